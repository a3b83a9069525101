// Light or dark: the system's choice until the reader makes another. The page's colours hang on <html data-theme>.
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
