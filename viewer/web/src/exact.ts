// Parses the engine's JSON: integers beyond 2^53 keep their digits, and invisible characters in texts become visible.
import { visible } from "./visible";

// An integer that a number cannot represent: arithmetic uses the nearest number, text has every digit.
export class Exact extends Number {
    constructor(readonly digits: string) {
        super(digits);
    }
    override toString(): string {
        return this.digits;
    }
    override toLocaleString(): string {
        return this.digits.replace(/\B(?=(\d{3})+$)/g, ",");
    }
    toJSON(): string {
        return this.digits;
    }
}

const SAFE_DIGITS = 15; // numbers with this many digits are below 2^53
const MAYBE_LARGE = /\d{16}/;
// A string with its escapes, or a number outside of one.
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/gs;
// Marks such integers. It is random, so that a recording cannot contain it.
const TAG = `exact ${Math.random()} `;

const isLarge = (token: string): boolean => /^-?\d+$/.test(token) && token.replace("-", "").length > SAFE_DIGITS && !Number.isSafeInteger(Number(token));

export function parseAnswer<T>(text: string): T {
    const marked = MAYBE_LARGE.test(text) ? text.replace(TOKEN, (token) => (token[0] !== '"' && isLarge(token) ? `"${TAG}${token}"` : token)) : text;
    if (marked === text && !text.includes("\\u") && visible(text) === text) return JSON.parse(text) as T;
    return JSON.parse(marked, (_, value: unknown) => (typeof value !== "string" ? value : value.startsWith(TAG) ? new Exact(value.slice(TAG.length)) : visible(value))) as T;
}
