// Computes with colours. Independent of the page, because the painting worker uses it too.
export type Rgb = readonly [number, number, number];

export const WHITE: Rgb = [255, 255, 255];
export const BLACK: Rgb = [0, 0, 0];

export const blend = (a: Rgb, b: Rgb, part: number): Rgb => [Math.round(a[0] + (b[0] - a[0]) * part), Math.round(a[1] + (b[1] - a[1]) * part), Math.round(a[2] + (b[2] - a[2]) * part)];

// Varies the lightness slightly per allocation, so that neighbours in one group can be distinguished.
export const varied = (colour: Rgb, row: number): Rgb => {
    const shade = ((Math.imul(row, 0x9e3779b1) >>> 28) - 7.5) / 7.5;
    return blend(colour, shade > 0 ? WHITE : BLACK, Math.abs(shade) * 0.11);
};

export const css = ([r, g, b]: Rgb, alpha = 1): string => (alpha === 1 ? `rgb(${r},${g},${b})` : `rgba(${r},${g},${b},${alpha})`);
