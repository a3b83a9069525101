#!/usr/bin/env python3
"""Writes the tables of calls that stand-ins answer alike, from the prototypes of NVIDIA's headers.

Usage: standin_calls.py LIBRARY INCLUDE_FOLDER... [--also INCLUDE_FOLDER...] [--check]

Uses only facts of the headers: names, parameters, and which of them are results. Leaves out functions that a source of the stand-in defines
by hand. Writes simulator/standins/<library>/<library>_calls.def; --check compares instead, and exits 1 if a function of the headers is in
neither. From another version of the library, after --also, takes the names that the first one lacks.

Rows (simulator/standins/common/calls.h says what they become):
  WORK(name)                    one launch on the stream of the handle, which is the first parameter
  WORK_ON(name, (...), operands)             the same, with the memory that it reads and writes
  CALL(name, (...), actions), CALL_ON(name, (...), (operands), actions)   the same, and results are written
  QUERY(name, (...), actions)   no work, results are written
  SET(name, number, type), GET(name, number, type)   a value of the handle that is kept
  NEW(name), FREE(name)         an object without state of its own
  DONE(name)                    nothing to do
  ABSENT(name)                  not simulated: counted, and the library's "not supported"
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# table: folder, headers, beginnings of names.
LIBRARIES = {
    "cublas": ("cublas", "cublas_v2.h cublasXt.h", "cublas(?!Lt)"),
    "cublas_legacy": ("cublas", "cublas.h", "cublas(?!Lt)"),
    "cusolver": ("cusolver", "cusolverDn.h cusolverSp.h cusolverRf.h cusolverMg.h cusolverSp_LOWLEVEL_PREVIEW.h", "cusolver"),
    "cusparse": ("cusparse", "cusparse.h", "cusparse"),
    "cupti": (
        "cupti",
        "cupti.h cupti_profiler_target.h cupti_pcsampling.h cupti_checkpoint.h cupti_profiler_host.h cupti_range_profiler.h "
        "cupti_pmsampling.h cupti_sass_metrics.h cupti_target.h",
        "cupti",
    ),
    "cudnn": ("cudnn", "cudnn.h cudnn_backend.h cudnn_gnn_ops.h cudnn_subquadratic_ops.h", "cudnn"),
}
# Calls whose results a program needs but no stand-in has.
NOT_SIMULATED = r"cupti(Profiler|RangeProfiler|Pm|PC|Sass|Metric|Event|Device[GE]|Enum|Num|GetNum|GetSass|GetCubin|KernelReplay|\w*ReplayMode)|cudnn(Gnn|LongFFT|GetFolded|FusedOps|\w*FusedOps|InitTransformDest)"
# Headers that are included from the compiler's own folder. Only their macros matter here, and all are empty.
EMPTY_MACROS = """__host__ __device__ __device_builtin__ __device_builtin_texture_type__ __device_builtin_surface_type__ __cudart_builtin__
    __forceinline__ __inline_hint__ __no_return__ CUDARTAPI CUDARTAPI_CDECL CUDART_CB __CUDA_DEPRECATED CUDA_CB __specialization_static
    CUDART_DEVICE""".split()
COMPILER_HEADERS = "host_defines.h host_config.h common_functions.h math_functions.h device_functions.h".split()


def preprocessed(headers, folders):
    with tempfile.TemporaryDirectory() as scratch:
        crt = Path(scratch) / "crt"
        crt.mkdir()
        for name in COMPILER_HEADERS:
            (crt / name).write_text("")
        (Path(scratch) / "late" / "nv").mkdir(parents=True)
        (Path(scratch) / "late" / "nv" / "target").write_text("")
        macros = [f"-D{name}=" for name in EMPTY_MACROS] + ["-D__align__(n)=", "-D__builtin_align__(n)="]
        headers = " ".join(name for name in headers.split() if any((Path(folder) / name).is_file() for folder in folders))
        source = "#include <stddef.h>\n#include <stdint.h>\n" + "".join(f"#include <{name}>\n" for name in headers.split())
        # Some functions are declared only for C++.
        command = ["g++", "-E", "-P", "-x", "c++", *macros, f"-I{scratch}", *[f"-I{folder}" for folder in folders],
                   f"-idirafter{scratch}/late", "-"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(headers + ": " + next((line for line in done.stderr.splitlines() if "error" in line), "the preprocessor failed"))
        return done.stdout


def statements(text):
    """Yields the text between semicolons outside braces."""
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)", "", text)
    text = re.sub(r'extern\s*"C"\s*\{', ";", text).replace('extern "C"', "")
    text = re.sub(r"\[\[.*?\]\]", "", text, flags=re.S)
    depth, current = 0, ""
    for character in text:
        if character == "{":
            depth += 1
        elif character == "}" and depth == 0:
            current = ""  # the end of extern "C"
        elif character == "}":
            depth -= 1
            if depth == 0:
                current += "{}"
        elif depth == 0 and character == ";":
            yield " ".join(current.split("{}")[-1].split() if "typedef" not in current else current.split())
            current = ""
        elif depth == 0:
            current += character


class Header:
    """Returns prototypes {name: [(type, parameter)]} and the names of pointer types."""

    def __init__(self, library, folders):
        _, headers, prefix = LIBRARIES[library]
        self.pointers, self.prototypes, self.returns = set(), {}, {}
        self.constant = set()  # (function, parameter): the function only reads what the parameter points at
        for statement in statements(preprocessed(headers, folders)):
            typedef = re.match(r"typedef (?:const )?(?:struct \w+|void) ?(?:const )?\* ?(\w+)$", statement) or re.match(
                r"typedef [\w ]+\( ?\* ?(\w+) ?\)", statement
            )
            if typedef:
                self.pointers.add(typedef.group(1))
                continue
            found = re.match(rf"^(?:extern )?([\w ]+[\w*] ?\*?) ?\b({prefix}\w*) ?\((.*)\)$", statement)
            if found and "typedef" not in statement:
                self.returns[found.group(2)] = found.group(1).strip()
                self.prototypes[found.group(2)] = [self.parameter(text) for text in split(found.group(3))]
                for text, (_, parameter) in zip(split(found.group(3)), self.prototypes[found.group(2)]):
                    if re.search(r"\bconst\b", text):
                        self.constant.add((found.group(2), parameter))

    def parameter(self, text):
        text = text.replace("*", " * ").replace("const ", " ").strip()
        name = re.search(r"(\w+)\s*(\[\w*\])*$", text)
        kind = " ".join(text[: name.start()].split())
        if "[" in text[name.start():]:
            kind += " *"
        return kind.replace("* const", "*").replace("const *", "*").strip(), name.group(1)

    def c_type(self, kind):
        """Returns the class of a type in the calling conventions."""
        if kind == "cusolver_int_t *":
            return "int *"
        if kind in ("int *", "size_t *", "int64_t *", "float *", "double *"):
            return kind
        if "*" in kind or kind in self.pointers:
            return "void *"
        if kind in ("float", "double"):
            return kind
        if kind in ("cuComplex", "cuDoubleComplex"):
            return {"cuComplex": "struct standin_complex", "cuDoubleComplex": "struct standin_double_complex"}[kind]
        if kind in ("int64_t", "size_t", "long long", "long long int", "unsigned long long"):
            return "int64_t"
        return "int"


def split(parameters):
    return [text for text in parameters.split(",") if text.strip() not in ("", "void")]


def signature(header, parameters, last):
    """Returns the parameters up to the last that is needed. The calling conventions let a function ignore the rest."""
    if not parameters:
        return "(void)"
    texts = []
    for i, (kind, name) in enumerate(parameters[: last + 1]):
        c_type = "struct standin_handle *" if i == 0 and kind.endswith("Handle_t") else header.c_type(kind)
        texts.append(c_type + ("" if c_type.endswith("*") else " ") + ("handle" if i == 0 and kind.endswith("Handle_t") else name))
    return "(" + ", ".join(texts) + ")"


BYTES = {"float *": 4, "double *": 8, "cuComplex *": 8, "cuDoubleComplex *": 16, "int *": 4, "int64_t *": 8, "size_t *": 8}


# --- what each library's results are -----------------------------------------------------------------------------------------------------
def cublas_actions(name, parameters):
    kinds = {parameter: kind for kind, parameter in parameters}
    if re.match(r"cublas(I?[SDCZ][sdcz]?)(dot[uc]?|nrm2|asum|amax|amin)_v2(_64)?$", name) or re.match(r"cublasIa(max|min)Ex(_64)?$", name):
        return [("result", f"CLEAR(result, {BYTES[kinds['result']]})")]
    if re.match(r"cublas[SDCZ]rotg_v2$", name):
        return [(p, f"CLEAR({p}, {BYTES[kinds[p]]})") for p in ("c", "s")]
    if re.match(r"cublas\w(getrf|getri|matinv)Batched$", name):
        return [("info", "ZERO(info, batchSize)"), ("batchSize", "")]
    if re.match(r"cublas\w(geqrf|getrs)Batched$", name):
        return [("info", "PUT(info, 0)")]
    if re.match(r"cublas\wgelsBatched$", name):
        return [("info", "PUT(info, 0)"), ("devInfoArray", "ZERO(devInfoArray, batchSize)"), ("batchSize", "")]
    return []


def cusolver_actions(name, parameters):
    """`info` is device memory in the dense functions; the other functions' single results are the host's."""
    kinds = {parameter: kind for kind, parameter in parameters}
    order = [parameter for _, parameter in parameters]
    element = {"S": 4, "D": 8, "C": 8, "Z": 16}.get(name.removeprefix("cusolverDn")[:1], 1)
    actions = []
    if "ufferSize" in name or "BufferInfo" in name:
        size = [p for p in ("m", "n", "M", "N") if p in kinds and kinds[p] in ("int", "int64_t", "cusolver_int_t")]
        rows, columns = (size[0], size[-1]) if size else ("0", "0")
        batch = "batchSize" if "batchSize" in kinds else "1"
        for kind, parameter in parameters:
            lower = parameter.lower()
            if lower in ("lwork",) and kind in ("int *", "int64_t *"):
                actions.append((parameter, f"PUT({parameter}, ELEMENTS({rows}, {columns}, {batch}))"))
            elif kind == "size_t *" and "host" in lower:
                actions.append((parameter, f"PUT({parameter}, 0)"))
            elif kind == "size_t *":
                type_ = next((p for k, p in parameters if p in ("dataTypeA", "dataTypeDE", "dataTypeV")), None)
                width = f"WIDTH({type_})" if type_ else element
                actions.append((parameter, f"PUT({parameter}, (size_t)ELEMENTS({rows}, {columns}, {batch}) * {width})"))
        actions += [(p, "") for p in (rows, columns, batch) if p in order]
        actions += [(p, "") for p in order if p in ("dataTypeA", "dataTypeDE", "dataTypeV")]
        return actions
    for kind, parameter in parameters:
        lower = parameter.lower()
        if kind == "int *" and ("info" in lower) and name.startswith("cusolverDn"):
            batched = next((p for p in ("batchSize",) if p in kinds and "Batched" in name), None)
            actions.append((parameter, f"ZERO({parameter}, {batched or 1})"))
            if batched:
                actions.append((batched, ""))
        elif kind == "int *" and "info" in lower:
            actions.append((parameter, f"PUT({parameter}, 0)"))
        elif kind.endswith("*") and lower in ("niter", "niters", "meig", "meig64", "h_meig", "ranka", "issym", "num_eigs", "numnz"):
            actions.append((parameter, f"PUT({parameter}, {'n' if 'meig' in lower and 'n' in kinds else 0})"))
            actions += [("n", "")] if "meig" in lower else []
        elif kind == "int *" and lower in ("singularity", "position"):
            actions.append((parameter, f"PUT({parameter}, -1)"))
        elif kind.endswith("*") and lower in ("min_norm", "h_r_nrmf", "h_err_sigma", "residual", "executed_sweeps", "report", "nnzlref", "nnzuref"):
            actions.append((parameter, f"FILL({parameter}, {8 if 'double' in kind else 4})"))
    return actions


def cusparse_actions(name, parameters):
    actions = []
    for kind, parameter in parameters:
        lower = parameter.lower()
        if "ufferSize" in name and kind in ("size_t *", "int *") and "uffer" in lower:
            actions.append((parameter, f"PUT({parameter}, (TYPE_OF({parameter}))standin_size(STANDIN_CUSPARSE_BUFFER, 0)->bytes)"))
        elif lower in ("nnztotaldevhostptr", "nnztotal", "result") and "ufferSize" not in name:
            actions.append((parameter, f"CLEAR({parameter}, {BYTES.get(kind, 4)})"))
        elif kind == "int *" and lower == "position":
            actions.append((parameter, f"CLEAR({parameter}, 4)"))
        elif kind == "int *" and lower == "ncolors":
            actions.append((parameter, "PUT(ncolors, 0)"))
    return actions


def cudnn_actions(name, parameters):
    """Workspaces have the sizes of the only engine. A value set on a descriptor is kept by the name of the parameter, and returned when
    queried."""
    actions = []
    for kind, parameter in parameters:
        if kind == "size_t *":
            actions.append((parameter, f"PUT({parameter}, standin_cudnn_workspace())"))
    return actions


def cudnn_descriptor_row(header, name, parameters, numbers):
    """Returns a row for a function that sets or returns values of a descriptor, or None."""
    if not re.match(r"cudnn(RNN)?(Set|Get)", name) or not parameters or not parameters[0][0].endswith(("Descriptor_t", "Pack_t")):
        return None
    if any(kind.endswith("Descriptor_t") and header.c_type(kind) == "void *" for kind, _ in parameters[1:]) and "Attn" not in name:
        return None
    actions = []
    for kind, parameter in parameters[1:]:
        number = numbers.setdefault(parameter, len(numbers) + 1)
        if kind.endswith("*") and re.match(r"cudnn(RNN)?Get", name):
            actions.append(f"RECALL({number}, {parameter}, {size_of_result(header, kind)})")
        elif not kind.endswith("*"):
            actions.append(f"KEEP({number}, {parameter})")
    renamed = [(parameters[0][0], "descriptor")] + parameters[1:]
    return f"QUERY({name}, {signature(header, renamed, len(renamed) - 1)}, {'; '.join(actions)})" if actions else None


ACTIONS = {"cublas": cublas_actions, "cublas_legacy": None, "cusolver": cusolver_actions, "cusparse": cusparse_actions, "cudnn": cudnn_actions, "cupti": lambda name, parameters: []}


def size_of_result(header, kind):
    """Returns the number of bytes behind a pointer to a simple type."""
    target = kind[:-1].strip()
    if target.endswith("*") or target in header.pointers:
        return 8
    return {"struct standin_double_complex": 16, "int": 4, "float": 4}.get(header.c_type(target), 8)


# --- the memory that a call uses -----------------------------------------------------------------------------------------------------------
SCALARS = r"(?i)((alpha|beta|scaling|info|devinfo|h_|host)\w*|param|result|d_info)$"
SCRATCH = r"(?i)\w*(work|buffer)\w*"
ELEMENTS = ("float", "double", "cuComplex", "cuDoubleComplex", "int", "int64_t", "void", "__half", "half", "cusolver_int_t")


def operands_of(header, name, parameters):
    """Returns the operands as (parameter, macro): what points at elements of matrices and vectors. A list of pointers hides the memory that is
    used, so then nothing is known."""
    kinds = [kind for kind, _ in parameters]
    if not kinds or not kinds[0].endswith("Handle_t") or name.startswith(("cublasXt", "cusolverSp", "cusolverRf", "cusolverMg")):
        return []
    if any(re.search(r"\* *\*", kind) for kind in kinds) or re.search("Batched", name) and any("rray" in parameter for _, parameter in parameters):
        return []
    found = []
    for kind, parameter in parameters[1:]:
        if kind.removesuffix("*").strip() not in ELEMENTS or not kind.endswith("*"):
            continue
        if re.match(SCALARS, parameter) or re.match(SCRATCH, parameter):
            continue
        found.append((parameter, "READS" if (name, parameter) in header.constant else "WRITES"))
    return found


# --- rows --------------------------------------------------------------------------------------------------------------------------------
def row_of(library, header, name, numbers):
    parameters = header.prototypes[name]
    kinds = [kind for kind, _ in parameters]
    if library == "cublas_legacy":
        result = {"cuComplex": "struct standin_complex", "cuDoubleComplex": "struct standin_double_complex"}
        kind = header.returns[name]
        return f"LEGACY({name})" if kind == "void" else f"LEGACY_RESULT({name}, {result.get(kind, kind)})"
    if library == "cudnn":
        row = cudnn_descriptor_row(header, name, parameters, numbers)
        if row:
            return row
    # Returns rows for a value that is set and queried.
    pair = re.match(r"(\w+?)(Set|Get)([A-Z]\w*)$", name)
    if pair and len(parameters) == 2:
        other = pair.group(1) + ("Get" if pair.group(2) == "Set" else "Set") + pair.group(3)
        if other in header.prototypes and len(header.prototypes[other]) == 2:
            number = numbers.setdefault(pair.group(1) + pair.group(3), len(numbers) + 1)
            value = header.c_type(kinds[1] if pair.group(2) == "Set" else kinds[1].removesuffix("*").strip())
            return f"{pair.group(2).upper()}({name}, {number}, {value})"
    if re.search(r"[cC]reate\w*$", name) and 1 <= len(parameters) <= 2 and kinds[0].endswith("*"):
        return f"NEW({name})"
    if re.search(r"[dD]estroy\w*$", name) and len(parameters) == 1:
        return f"FREE({name})"
    if re.search(r"Logger|Xerbla", name):
        return f"DONE({name})"
    if re.search(NOT_SIMULATED, name):
        return f"ABSENT({name})"
    actions = ACTIONS[library](name, parameters)
    order = [parameter for _, parameter in parameters]
    is_query = re.search("ufferSize|BufferInfo|Get[A-Z]", name) is not None or not (kinds and kinds[0].endswith("Handle_t"))
    if not actions and re.search("Get[A-Z]|Supported|IsTracing|VirtualizationMode", name):  # values that are not kept: returns zeros, never earlier contents
        actions = [(parameter, f"FILL({parameter}, {size_of_result(header, kind)})") for kind, parameter in parameters if kind.endswith("*")]
        is_query = True
    operands = [] if is_query else operands_of(header, name, parameters)
    used = ", ".join(f"{macro}({parameter})" for parameter, macro in operands)
    last = max((order.index(parameter) for parameter, _ in [*actions, *operands]), default=0)
    text = "; ".join(action for _, action in actions if action)
    if not actions and not (kinds and kinds[0].endswith("Handle_t")):
        return f"DONE({name})"
    if not actions:
        return f"WORK_ON({name}, {signature(header, parameters, last)}, {used})" if used else f"WORK({name})"
    if used:
        return f"CALL_ON({name}, {signature(header, parameters, last)}, ({used}), {text})"
    return f"{'QUERY' if is_query else 'CALL'}({name}, {signature(header, parameters, last)}, {text})"


def earlier_rows(table, known):
    """Returns the table's rows of functions that these headers lack: they are of other versions of the library."""
    rows = re.findall(r"^[A-Z_]+\(\w+.*(?:\n  .*)*", table, flags=re.M)
    return [re.sub(r"\n  ", " ", row) for row in rows if re.match(r"[A-Z_]+\((\w+)", row)[1] not in known]


def wrapped(row):
    lines, current = [], ""
    for word in row.split(" "):
        if current and len(current) + 1 + len(word) > 138:
            lines.append(current)
            current = "  " + word
        else:
            current = f"{current} {word}" if current else word
    return "\n".join(lines + [current])


def by_hand(folder):
    """Returns the names that begin a definition in the stand-in's sources: after a type, or as a macro's argument."""
    text = "".join(path.read_text() for path in sorted(folder.glob("*.c")))
    text = re.sub(r"^[ \t#].*$", "", text, flags=re.M)
    in_macros = " ".join(re.findall(r"^[A-Z_]+\(([^)]*)\)", text, flags=re.M))
    return set(re.findall(r"\b(cu[A-Za-z]\w*)(?=\()", text)) | set(re.findall(r"\bcu[A-Za-z]\w*", in_macros))


def main():
    check = "--check" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    library, given = arguments[0], " ".join(arguments[1:]).split("--also")
    folders = given[0].split()
    folder = ROOT / "simulator" / "standins" / LIBRARIES[library][0]
    target = folder / f"{library}_calls.def"
    header = Header(library, folders)
    for other in (Header(library, more.split()) for more in given[1:]):
        header.prototypes = other.prototypes | header.prototypes
        header.returns = other.returns | header.returns
        header.pointers |= other.pointers
    done, numbers = by_hand(folder), {}
    if library == "cublas_legacy":  # its header also declares the functions of today's interface
        done |= set(Header("cublas", folders).prototypes)
    rows = [row_of(library, header, name, numbers) for name in sorted(header.prototypes) if name not in done]
    rows += earlier_rows(target.read_text() if target.exists() else "", set(header.prototypes) | done)
    rows.sort(key=lambda row: re.match(r"[A-Z_]+\((\w+)", row)[1])
    if check:
        have = done | set(re.findall(r"^[A-Z_]+\((\w+)", target.read_text(), flags=re.M))
        absent = sorted(set(header.prototypes) - have)
        print(f"{library}: {len(header.prototypes)} functions, {len(absent)} absent: {' '.join(absent[:20])}")
        return 1 if absent else 0
    target.write_text(
        f"// Calls of {library} that are answered alike, written by tools/standin_calls.py from the headers' prototypes. No include guard.\n"
        + "\n".join(wrapped(row) for row in rows)
        + "\n"
    )
    print(f"{library}: {len(rows)} rows, {len(done)} by hand")
    return 0


if __name__ == "__main__":
    sys.exit(main())
