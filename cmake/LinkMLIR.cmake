# partita_mlir: MLIR and LLVM, to be linked with.
#
# A target with the property LINKS_STATICALLY has what it needs of them inside: it is a third as large as the libraries, starts in a
# fifth of the time, and an installed one needs no LLVM. Others link the shared libraries, which takes less from nothing.
find_package(ZLIB REQUIRED)
find_package(LLD REQUIRED CONFIG)

add_library(partita_mlir INTERFACE)
set(static "$<BOOL:$<TARGET_PROPERTY:LINKS_STATICALLY>>")
# Archives that name each other in cycles are no matter for this linker alone.
if(NOT PARTITA_LLD OR PARTITA_SANITIZE OR PARTITA_FUZZ)
  set(static 0)
endif()

# Only code for these processors is made.
set(others ${LLVM_TARGETS_TO_BUILD})
list(REMOVE_ITEM others X86 NVPTX)
list(JOIN others "|" others_regex)
get_property(mlir_libs GLOBAL PROPERTY MLIR_ALL_LIBS)
set(archives)
foreach(lib IN LISTS mlir_libs LLVM_AVAILABLE_LIBS)
  set(archive ${LLVM_LIBRARY_DIRS}/lib${lib}.a)
  if(EXISTS ${archive} AND NOT lib MATCHES "^LLVM(${others_regex})")
    list(APPEND archives ${archive})
  endif()
endforeach()

# The linker in the compiler would initialize the others, too. What it has for bitcode, which it never sees, names a plugin that
# Debian's archives lack.
set(stubs "void _Z18getPollyPluginInfov(void) { __builtin_trap(); }\n")
foreach(target IN LISTS others)
  foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser)
    string(APPEND stubs "void LLVMInitialize${target}${part}(void) {}\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/OtherTargets.c CONTENT "${stubs}")
add_library(partita_other_targets STATIC ${CMAKE_BINARY_DIR}/OtherTargets.c)

target_link_libraries(partita_mlir INTERFACE
  "$<${static}:${archives};partita_other_targets;-Wl,--gc-sections>"
  "$<$<NOT:${static}>:MLIR;LLVM>" ZLIB::ZLIB zstd::libzstd_shared)
# They name the shared library.
set_target_properties(lldELF lldCommon PROPERTIES INTERFACE_LINK_LIBRARIES partita_mlir)
