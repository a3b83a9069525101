// Colours with a meaning: a group has the same colour in every window, view and recording, each time the page is opened.
//
// The hues are those of Okabe and Ito, chosen to remain distinct with colour blindness (the yellow darker), and a violet; each at three lightnesses.

import { BLACK, blend, css, varied, WHITE, type Rgb } from "./palette";

const HUES: readonly Rgb[] = [
    [0, 114, 178],
    [230, 159, 0],
    [0, 158, 115],
    [204, 121, 167],
    [86, 180, 233],
    [213, 94, 0],
    [170, 160, 40],
    [110, 96, 170],
];

const PALETTE: readonly Rgb[] = [0.12, 0.42, -0.24].flatMap((light) => HUES.map((hue) => blend(hue, light > 0 ? WHITE : BLACK, Math.abs(light))));

// FNV-1a with a final mix, so that names that differ in one digit get distant values.
function hash(text: string): number {
    let value = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
    value = Math.imul(value ^ (value >>> 16), 0x45d9f3b);
    return (value ^ (value >>> 15)) >>> 0;
}

const known = new Map<string, Rgb>();
const seeded = new Map<string, Rgb>();

// Gives names that are shown together different colours, as long as colours are left. The most important names come first; earlier callers
// keep their colours.
export function seedColours(names: readonly string[]): void {
    const taken = new Set<number>();
    for (const name of names) {
        let place = hash(name) % PALETTE.length;
        for (let tried = 0; taken.has(place) && taken.size < PALETTE.length && tried < PALETTE.length; tried++) place = (place + 1) % PALETTE.length;
        taken.add(place);
        if (!seeded.has(name)) seeded.set(name, PALETTE[place]);
    }
}

// Returns the colour of a seeded name; otherwise the name alone decides, so that it is the same at every load.
export function colourOf(name: string): Rgb {
    let colour = seeded.get(name) ?? known.get(name);
    if (!colour) {
        colour = PALETTE[hash(name) % PALETTE.length];
        if (known.size > 20000) known.clear();
        known.set(name, colour);
    }
    return colour;
}

// A canvas returns an opaque colour as #rrggbb. Do not read pixels: browsers that resist fingerprinting falsify them.
const probe = document.createElement("canvas").getContext("2d")!;
export function parse(text: string): Rgb {
    probe.fillStyle = "#000";
    probe.fillStyle = text.trim();
    const value = parseInt(String(probe.fillStyle).slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
}

// Chooses black or white for legible text on a colour (WCAG's relative luminance).
const channel = (value: number): number => (value <= 10 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]: Rgb): number => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
export const inkOn = (ground: Rgb): string => (luminance(ground) > 0.179 ? "#000000" : "#ffffff");

// The page's current colours, light or dark.
export type Theme = {
    ground: string;
    panel: string;
    line: string;
    text: string;
    quiet: string;
    accent: string;
    reserved: string;
    active: string;
    allocated: string;
    alarm: string;
    groundRgb: Rgb;
    rest: Rgb;
    faint: Rgb; // for live memory that the search did not find
    unfound: string; // the colour `faint`, as CSS
};

export function themeOf(element: Element): Theme {
    const style = getComputedStyle(element);
    const get = (name: string) => style.getPropertyValue(`--${name}`).trim() || "#888";
    const theme = Object.fromEntries(
        ["ground", "panel", "line", "text", "quiet", "accent", "reserved", "active", "allocated", "alarm"].map((name) => [name, get(name)]),
    ) as unknown as Theme;
    theme.groundRgb = parse(theme.ground);
    theme.rest = blend(theme.groundRgb, parse(theme.quiet), 0.45);
    theme.faint = blend(parse(theme.panel), parse(theme.quiet), 0.5);
    theme.unfound = css(theme.faint);
    return theme;
}

export { blend, css, varied, type Rgb };
