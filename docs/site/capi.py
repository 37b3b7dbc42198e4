"""partita.h as a page: each declaration with the comment before it, so that the header stays the one place where the interface is described."""

import re

COMMENT = r"/\*(.*?)\*/"


def prose(comment):
    lines = [re.sub(r"^ \* ?", "", line) for line in comment.strip("\n").splitlines()]
    return "\n".join(line.strip() if not line.startswith("  ") else "  " + line for line in lines).strip()


def directive(kind, declaration, text, indent=""):
    body = "\n".join(f"{indent}{line}" if line else "" for line in (text or "").splitlines())
    return f"{indent}:::{{c:{kind}}} {' '.join(declaration.split())}\n{body}\n{indent}:::\n"


def members(body, separator, kind):
    """What a struct or an enum holds: `name; /* what it says */`."""
    # A comment may go on below its member.
    lines = re.sub(COMMENT, lambda found: f"/*{' '.join(found[1].split())}*/", body.strip(), flags=re.S).splitlines()
    for line in lines if len(lines) > 1 else re.split(r"(?<=,)", lines[0]):
        if found := re.match(rf"\s*([^/]+?)(?: = \d+)?{separator}?\s*(?:{COMMENT})?\s*$", line):
            yield directive(kind, found[1], (found[2] or "").strip())


def section(comment, code):
    """One declaration, or several that share a comment."""
    code, text = code.strip(), prose(comment)
    if found := re.match(r"typedef (struct|enum) (\w+) \{(.*)\} \w+;", code, re.S):
        separator, kind = (";", "member") if found[1] == "struct" else (",", "enumerator")
        inner = "\n".join(members(found[3], separator, kind))
        return f"::::{{c:{found[1]}}} {found[2]}\n{text}\n\n{inner}::::\n"
    if found := re.match(r"typedef struct (\w+) \w+;", code):
        return directive("struct", found[1], text)
    functions = [" ".join(f.split()) for f in re.findall(r"PARTITA_API ([^;]+);", code, re.S)]
    # Void is no parameter in the directive's grammar either.
    return "\n".join(directive("function", f, text if i == 0 else "") for i, f in enumerate(functions))


def page(header):
    first, rest = re.match(r"/\*===.*?\*===-+===\*\n \*\n(.*?)\n \*===-+===\*/(.*)", header, re.S).groups()
    body = rest[rest.index('extern "C" {') :]
    result = ["# C interface", "", "`#include <partita.h>`, link with `-lpartita` or, in CMake, `Partita::partita`.", "", prose_with_code(first), ""]
    # Each comment and the code up to the next comment that stands at a margin.
    pieces = re.split(r"(?m)^/\*(.*?)\*/\n", "\n" + body, flags=re.S)
    # The first piece has what stands before any comment: the version and the status.
    for found in re.finditer(r"typedef (?:struct|enum) \w+ \{.*?\} \w+;|typedef struct \w+ \w+;", pieces[0], re.S):
        result.append(section("", found[0]))
    for comment, code in zip(pieces[1::2], pieces[2::2]):
        for i, part in enumerate(p for p in re.split(r"(?m)\n(?=typedef )", code) if p.strip()):
            result.append(section(comment if i == 0 else "", part))
    return "\n".join(result)


def prose_with_code(comment):
    """Paragraphs; what is indented is code."""
    lines = [line[3:] if line.startswith(" * ") else "" for line in comment.splitlines()]
    result, code = [], False
    for line in lines:
        if line.startswith("  ") != code and line:
            result.append("```c" if not code else "```")
            code = not code
        result.append(line[2:] if code else line)
    return "\n".join(result + (["```"] if code else []))
