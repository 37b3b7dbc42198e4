#compdef partita-compile partita-run partita-opt
# Completion for zsh: the options that the programs list themselves.
local -a options
if [[ $words[CURRENT] == -* ]]; then
  options=(${(f)"$($words[1] --help 2>/dev/null | grep -oE -- '(^|[ ,])--?[a-z][a-z-]*' | tr -d ' ,' | sort -u)"})
  compadd -- $options
else
  _files
fi
