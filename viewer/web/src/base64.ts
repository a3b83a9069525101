// Decodes base64, in which a page contains the engine and recordings.
type Native = { fromBase64?(text: string): Uint8Array<ArrayBuffer> }; // newer browsers only

export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
    const native = (Uint8Array as Native).fromBase64;
    if (native) return native.call(Uint8Array, text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
}
