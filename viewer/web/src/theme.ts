// Light or dark: follows the system until the reader chooses. The page's colours depend on <html data-theme>.
import type { Store } from "./state";

const system = matchMedia("(prefers-color-scheme: dark)");

export function isDark(store: Store): boolean {
    return store.state.dark ?? system.matches;
}

export function applyTheme(store: Store): void {
    document.documentElement.dataset.theme = isDark(store) ? "dark" : "light";
}

export function followSystem(changed: () => void): void {
    system.addEventListener("change", changed);
}
