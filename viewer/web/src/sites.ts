// Names of groups as people read them: "file:line:function" with the function first and the path cut to its end.

export type Site = { title: string; place: string };

export function siteOf(name: string): Site {
    const match = /^(?:stack \d+: )?(.*):(-?\d+):(.*)$/s.exec(name);
    if (!match) return { title: name, place: "" };
    const short = match[1].split(/[/\\]/).slice(-2).join("/");
    return { title: match[3] || "?", place: match[1] === "" ? "" : `${short}:${match[2]}` };
}

// What the engine groups by, and how that is called.
export const GROUPINGS: readonly (readonly [string, string])[] = [
    ["site", "call site"],
    ["stack", "call stack"],
    ["function", "innermost function"],
    ["file", "file"],
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

// Groups whose name the search finds again in every view.
export const searchable = (by: string): boolean => ["site", "stack", "function", "file", "category", "metadata", "context"].includes(by);
export const searchText = (by: string, name: string): string => (by === "stack" ? name.replace(/^stack \d+: /, "") : name);
