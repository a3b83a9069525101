# Shipped files are built like Debian's packages: stack protector, checked string functions, position-independent programs, relocations
# read-only before main(), no executable stack. tests/house/check_hardening.py checks the result. Sanitizers bring their own checks.
include(CheckPIESupported)
check_pie_supported()
if(NOT VRAM_SANITIZE)
  target_compile_options(vram_flags INTERFACE -fstack-protector-strong)
  target_link_options(vram_flags INTERFACE -Wl,-z,relro,-z,now -Wl,-z,noexecstack)
  # _FORTIFY_SOURCE needs an optimizing build.
  if(CMAKE_BUILD_TYPE MATCHES "^(Rel|MinSize)")
    target_compile_options(vram_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  endif()
endif()
