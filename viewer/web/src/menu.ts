// A button with a list of commands: arrows, Home and End move, Enter chooses, Escape closes.
import { clear, el } from "./dom";

export type Command = { title: string; hint?: string; disabled?: boolean; run(): void };

export class Menu {
    readonly root: HTMLElement;
    readonly button: HTMLButtonElement;
    private readonly list = el("div", { class: "menu-list", role: "menu", hidden: true });

    constructor(
        title: string,
        private readonly commands: () => Command[],
        attributes: Record<string, string> = {},
    ) {
        this.button = el("button", { type: "button", "aria-haspopup": "menu", "aria-expanded": "false", ...attributes, onclick: () => this.toggle() }, title);
        this.root = el("div", { class: "menu" }, this.button, this.list);
        this.list.setAttribute("aria-label", title);
        this.root.addEventListener("keydown", (event) => this.onKey(event));
        // Where a click does not focus a button (macOS), it would remove the focus from the list and so close it.
        this.root.addEventListener("mousedown", (event) => this.list.hidden || event.preventDefault());
        this.root.addEventListener("focusout", (event) => {
            if (!this.root.contains(event.relatedTarget as Node | null)) this.close();
        });
    }

    toggle(): void {
        if (!this.list.hidden) return this.close();
        clear(this.list);
        for (const command of this.commands()) {
            const item = el("button", { type: "button", role: "menuitem", tabindex: -1, "aria-disabled": String(command.disabled ?? false) }, command.title);
            if (command.hint) item.append(el("kbd", {}, command.hint));
            item.addEventListener("click", () => {
                if (command.disabled) return;
                this.close();
                this.button.focus();
                command.run();
            });
            this.list.append(item);
        }
        this.list.hidden = false;
        this.button.setAttribute("aria-expanded", "true");
        this.focus(0);
    }

    close(): void {
        this.list.hidden = true;
        this.button.setAttribute("aria-expanded", "false");
    }

    private focus(index: number): void {
        const items = [...this.list.children] as HTMLElement[];
        items.at(index % items.length)?.focus();
    }

    private onKey(event: KeyboardEvent): void {
        if (this.list.hidden) return;
        const items = [...this.list.children];
        const at = items.indexOf(document.activeElement!);
        if (event.key === "Escape") {
            this.close();
            this.button.focus();
        } else if (event.key === "ArrowDown") this.focus(at + 1);
        else if (event.key === "ArrowUp") this.focus(at - 1 + items.length);
        else if (event.key === "Home") this.focus(0);
        else if (event.key === "End") this.focus(items.length - 1);
        else return;
        event.preventDefault();
        event.stopPropagation();
    }
}
