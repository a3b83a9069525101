"""Finds the ranks that a source file compares its own rank with. A program that reads RANK from the environment gets a plain number, so its
comparisons cannot be observed (vram_fit_kinds.py)."""
import ast

VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
EQUALITY = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def reads_rank(node):
    """Returns whether an expression reads the environment's RANK or calls get_rank() without a group."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and part.value in VARIABLES:
            return True
        if isinstance(part, ast.Call) and not part.args and not part.keywords and name_of(part.func) == "get_rank":
            return True
    return False


def name_of(node):
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def assignments(tree):
    """Returns pairs of target and value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = zip(target.elts, node.value.elts) if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) else [(target, node.value)]
                yield from pairs
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield node.target, node.value


def numbers(node, constants):
    """Returns the integers that an operand can have."""
    if isinstance(node, ast.Constant):
        return [node.value] if type(node.value) is int else []
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [number for element in node.elts for number in numbers(element, constants)]
    return constants.get(name_of(node), [])


def of_text(text):
    """Returns pairs of rank and line."""
    tree = ast.parse(text)
    names, constants = set(), {}
    for target, value in assignments(tree):
        name = name_of(target)
        if name and reads_rank(value):
            names.add(name)
        elif name:
            constants[name] = constants.get(name, []) + numbers(value, {})
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], EQUALITY):
            sides = node.left, node.comparators[0]
            for one, other in (sides, sides[::-1]):
                if name_of(one) in names or name_of(one) is None and reads_rank(one):
                    found += [(rank, node.lineno) for rank in numbers(other, constants)]
    return found


def of_file(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return of_text(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # the parser reports deep nesting as the last two
        return []
