// Computes zooming and moving of the window within the history.

export type Span = { from: number; to: number };

const LEAST = 1; // an event or a microsecond

// Moves the window into [0, length], keeping its length if possible.
export function clamped({ from, to }: Span, length: number): Span {
    const size = Math.min(Math.max(to - from, Math.min(LEAST, length)), length);
    const start = Math.min(Math.max(from, 0), length - size);
    return { from: start, to: start + size };
}

// A `factor` below 1 zooms in; the position `at` stays at its place on the screen.
export function zoomed({ from, to }: Span, length: number, at: number, factor: number): Span {
    const size = Math.min(Math.max((to - from) * factor, Math.min(LEAST, length)), length);
    const share = to > from ? (at - from) / (to - from) : 0.5;
    return clamped({ from: at - share * size, to: at + (1 - share) * size }, length);
}

export function moved({ from, to }: Span, length: number, by: number): Span {
    return clamped({ from: from + by, to: to + by }, length);
}

// Returns the zoom factor of a wheel event, the same for wheels that count lines and touch pads that count pixels.
export function wheelFactor(event: WheelEvent): number {
    const pixels = event.deltaY * (event.deltaMode === 1 ? 32 : event.deltaMode === 2 ? 400 : 1);
    return Math.exp(Math.max(-1, Math.min(1, pixels / 400)));
}
