// Readable names of groups: "file:line:function" becomes the function first, then the end of the path.

export type Site = { title: string; place: string };

// Returns a C++ function without its arguments: "at::_ops::empty::call" instead of the whole signature, so that a narrow place shows the
// operator.
export function shortFunction(name: string): string {
    if (!/[(<]/.test(name) || name.startsWith("<")) return name;
    let depth = 0;
    let kept = "";
    const plain = name.replaceAll("(anonymous namespace)::", "");
    for (let i = 0; i < plain.length; i++) {
        const operator = /(^|[^\w])operator$/.test(kept);
        if (operator && depth === 0) {
            const sign = /^(\(\)|[^\w\s(]+|\s+\w+)/.exec(plain.slice(i))?.[0] ?? "";
            kept += sign;
            i += sign.length - 1;
            if (sign !== "") continue;
        }
        if (plain[i] === "<") depth++;
        else if (plain[i] === ">" && plain[i - 1] !== "-") depth = Math.max(0, depth - 1);
        else if (depth === 0 && plain[i] === "(") break;
        else if (depth === 0) kept += plain[i];
    }
    // Remove the result type before the name.
    return kept.trim().replace(/^.*\s(?=\S+$)/s, (type) => (/operator\s+$/.test(type) ? type : "")) || name;
}

// Unnamed machine code is "library+0x38b00".
export const frameName = (name: string, file: string): string => (name.startsWith("0x") && file !== "" ? `${file.split(/[/\\]/).at(-1)}+${name}` : shortFunction(name));

export function siteOf(name: string): Site {
    const match = /^(?:stack \d+: )?(.*):(-?\d+):(.*)$/s.exec(name);
    if (!match) return { title: name, place: "" };
    if (match[3].startsWith("0x") && match[1] !== "") return { title: frameName(match[3], match[1]), place: match[1] };
    const short = match[1].split(/[/\\]/).slice(-2).join("/");
    return { title: shortFunction(match[3]) || "?", place: match[1] === "" || match[1] === "??" ? "" : Number(match[2]) > 0 ? `${short}:${match[2]}` : short };
}

// Removes unknown parts of a call site: "step" for "??:0:step", "train.py:main" for "train.py:0:main".
export const plainSite = (name: string): string => name.replace(/^(stack \d+: )?(?:\?\?)?:0:(?=.)/, "$1").replace(/^([^:]+):0:(?=.)/, "$1:");

// Removes folders from the call sites in a text: "models.py:174:update_nodes", as everywhere on the page.
export function shortSites(text: string, sites: readonly (string | null | undefined)[]): string {
    const known = [...new Set(sites)].filter((site): site is string => Boolean(site)).sort((a, b) => b.length - a.length);
    return known.reduce((short, site) => {
        const match = /^(.*):(-?\d+):(.*)$/s.exec(site);
        return match ? short.replaceAll(site, plainSite(`${match[1].split(/[/\\]/).at(-1)}:${match[2]}:${shortFunction(match[3])}`)) : short;
    }, text);
}

// Shortens a C++ name to its last two parts, "BmmBackward0::apply", for the narrowest places; the title has the whole name.
export const tailOf = (title: string): string => (/^[\w:~]+$/.test(title) ? title.split("::").slice(-2).join("::") : title);

// The engine's groupings and their names.
export const GROUPINGS: readonly (readonly [string, string])[] = [
    ["site", "call site"],
    ["stack", "call stack"],
    ["function", "innermost function"],
    ["file", "file"],
    ["role", "role"],
    ["module", "module"],
    ["category", "category"],
    ["pool", "pool"],
    ["stream", "stream"],
    ["annotation", "annotation"],
    ["thread", "thread"],
    ["metadata", "metadata"],
    ["context", "compile context"],
    ["size", "size"],
    ["regex", "expression\u2026"],
];

// Groupings whose names the search finds in every view.
export const searchable = (by: string): boolean => ["site", "stack", "function", "file", "category", "metadata", "context"].includes(by);
export const searchText = (by: string, name: string): string => (by === "stack" ? name.replace(/^stack \d+: /, "") : name);
