"""Where a source file belongs: its room, and the name by which other files include it ("core/pool.h" is in the room core).

A room is a folder of allocator/ or recordings/, simulator/sim, a stand-in's folder, or a folder at the top of the tree. Public headers of
all products are one room, `include`.
"""
from pathlib import Path

PRODUCTS = ("allocator", "recordings", "simulator", "replay")
STANDINS = "simulator/standins"
# The folders in which the compiler searches included files.
ROOTS = (Path("allocator"), Path("recordings"), Path("simulator"), Path())
HEADERS = tuple(Path(product) / "include" for product in PRODUCTS)


def is_public(path):
    """Returns whether a path from the top of the tree is a public header."""
    parts = Path(path).parts
    return len(parts) > 2 and parts[0] in PRODUCTS and parts[1] == "include"


def is_standin(path):
    return Path(path).as_posix().startswith(STANDINS + "/")


def room_of(path):
    """Returns the room: 'config' for allocator/config/lex.h, 'cli' for cli/args.h, 'standins/libcuda' for its files, 'include' for a
    public header."""
    parts = Path(path).parts
    if is_public(path):
        return "include"
    if is_standin(path):
        return "/".join(parts[1:3])
    return parts[1] if parts[0] in ("allocator", "recordings", "simulator") and len(parts) > 2 else parts[0]


def below_room(path):
    """Returns the path of a file in its room: 'source/paged.c' for allocator/core/source/paged.c."""
    parts = Path(path).parts
    return "/".join(parts[1:] if parts[0] == "replay" else parts[2:])


def is_of_products(path):
    """Returns whether a file belongs to the library: it is neither a public header nor in a stand-in."""
    return Path(path).parts[0] in PRODUCTS and not is_public(path) and not is_standin(path)


def sources(root, suffixes):
    """Returns the library's files with one of these suffixes, sorted."""
    found = (path for product in PRODUCTS for path in (root / product).rglob("*") if path.suffix in suffixes)
    return sorted(path for path in found if is_of_products(path.relative_to(root)))


def headers(root):
    return sorted(path for folder in HEADERS for path in (root / folder / "vram").glob("*.h*"))
