// Converts paths of the system to the program's form and back. The program's paths have slashes and one root. On Windows, drives are
// folders of the root ("/C:/x"), and so is the beginning of a share's path ("/\\server\share/x").
const BEGINS = /(?:^|\/)(?=[A-Za-z]:(?:[\\/]|$)|\\\\[^\\/])/g;

const fromWindows = (name) => `/${name.replace(/^\\\\[^\\/]+[\\/][^\\/]+|\\/g, (part) => (part === "\\" ? "/" : part))}`;

// Returns the last full path in the name: the program appends a full path to its current folder, because it does not begin with a slash.
const toWindows = (name) => {
    const last = [...name.matchAll(BEGINS)].at(-1);
    if (last === undefined) return name;
    const path = name.slice(last.index + last[0].length);
    return path.length === 2 ? `${path}/` : path;
};

const same = (name) => name;
export const pathsOf = (windows) => (windows ? { inside: fromWindows, toHost: toWindows } : { inside: same, toHost: same });
