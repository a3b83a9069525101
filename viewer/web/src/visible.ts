// Shows characters that change how other text reads (directions, line and paragraph separators, invisible controls) as their number:
// "\u27e8U+202E\u27e9". Everything the engine returns is converted, and questions are converted back, so that searching for a name on the
// page finds it in the recording.
const HIDDEN = /[\u0085\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const SHOWN = /\u27e8U\+([0-9A-F]{4})\u27e9/g;

const shown = (character: string): string => `\u27e8U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`;

export const visible = (text: string): string => text.replace(HIDDEN, shown);

export const asRecorded = (text: string): string => text.replace(SHOWN, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
