// Paths of the system, as the program names them and back. Inside they have slashes and one root; on Windows the drives are folders of it ("/C:/x"),
// and so is the begin of a share's path ("/\\server\share/x").
const BEGINS = /(?:^|\/)(?=[A-Za-z]:(?:[\\/]|$)|\\\\[^\\/])/g;

const fromWindows = (name) => `/${name.replace(/^\\\\[^\\/]+[\\/][^\\/]+|\\/g, (part) => (part === "\\" ? "/" : part))}`;

// The last full path in it: the program puts an argument that is one behind the folder it is in, for it does not begin with a slash.
const toWindows = (name) => {
    const last = [...name.matchAll(BEGINS)].at(-1);
    if (last === undefined) return name;
    const path = name.slice(last.index + last[0].length);
    return path.length === 2 ? `${path}/` : path;
};

const same = (name) => name;
export const pathsOf = (windows) => (windows ? { inside: fromWindows, toHost: toWindows } : { inside: same, toHost: same });
