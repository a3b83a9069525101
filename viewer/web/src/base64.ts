// Bytes out of base64: the engine and recordings stand so in a page.
type Native = { fromBase64?(text: string): Uint8Array<ArrayBuffer> }; // newer browsers have it

export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
    const native = (Uint8Array as Native).fromBase64;
    if (native) return native.call(Uint8Array, text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
}
