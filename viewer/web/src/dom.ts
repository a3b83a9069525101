// Creates elements. Text is always inserted as text: the page never interprets a file's contents as markup.

type Child = Node | string | number | null | undefined | false;
type Attributes = { [name: string]: string | number | boolean | ((event: never) => void) | undefined };

export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (value === undefined || value === false) continue;
        if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value as EventListener);
        else element.setAttribute(name, value === true ? "" : String(value));
    }
    add(element, ...children);
    return element;
}

export function add(element: Element, ...children: Child[]): void {
    for (const child of children) {
        if (child === null || child === undefined || child === false) continue;
        element.append(typeof child === "number" ? String(child) : child);
    }
}

export function clear(element: Element): void {
    element.replaceChildren();
}

// Formats rows as CSV (RFC 4180). Prefixes an apostrophe to text that a spreadsheet would treat as a formula.
export function csvText(header: readonly string[], rows: Iterable<readonly (string | number | null | undefined)[]>): string {
    const field = (value: string | number | null | undefined): string => {
        if (value === null || value === undefined) return "";
        if (typeof value === "number" || (value as unknown) instanceof Number) return String(value);
        const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
        return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [header.map(field).join(",")];
    for (const row of rows) lines.push(row.map(field).join(","));
    return lines.join("\r\n") + "\r\n";
}

// Escapes text for SVG source.
export function xmlText(text: string | number): string {
    return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, " ");
}
