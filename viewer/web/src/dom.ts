// Elements by hand. Text is always text: nothing in this page makes markup of what a file says.

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
