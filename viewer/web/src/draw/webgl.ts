// Draws quads with WebGL2: one instanced call, four corners each.
import type { Rgb } from "./palette";
import type { Painter, Shown } from "./painter";
import { shapesOf, type Picture } from "./picture";
import { EDGE_LEFT, EDGE_RIGHT, FADED, HATCHED, MATCHED, NO_GROUP, type Emphasis, type QuadColumns } from "./quads";

// u_place: x offset and scale, y offset and scale, in canvas pixels, y from the top.
const VERTEX = `#version 300 es
in vec4 rect;
in vec4 colour;
in uint info;
uniform vec4 place;
uniform vec2 size;
uniform vec2 emphasis; // group or -1, whether matches count
uniform vec3 faint;
uniform float ratio;
out vec2 at;
flat out vec2 extent;
flat out vec3 fill;
flat out uint kind;
void main() {
    float x0 = place.x + rect.x * place.y, x1 = place.x + rect.y * place.y;
    float y0 = place.z + (1.0 - rect.w) * place.w, y1 = place.z + (1.0 - rect.z) * place.w;
    x1 = max(x1, x0 + ratio);
    extent = vec2(x1 - x0, y1 - y0);
    vec2 corner = vec2(float(gl_VertexID & 1), float(gl_VertexID >> 1));
    at = corner * extent;
    vec2 pixel = vec2(x0, y0) + at;
    gl_Position = vec4(pixel.x / size.x * 2.0 - 1.0, 1.0 - pixel.y / size.y * 2.0, 0.0, 1.0);
    uint group = info >> 8u;
    bool faded = (emphasis.x >= 0.0 && float(group) != emphasis.x) || (emphasis.y > 0.5 && (info & ${MATCHED}u) == 0u);
    fill = faded ? mix(colour.rgb, faint, ${FADED}) : colour.rgb;
    kind = info;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec2 at;
flat in vec2 extent;
flat in vec3 fill;
flat in uint kind;
uniform vec3 ground;
uniform float ratio;
out vec4 result;
void main() {
    vec3 colour = fill;
    if ((kind & ${HATCHED}u) != 0u && mod(gl_FragCoord.x + gl_FragCoord.y, 7.0 * ratio) < 2.2 * ratio) colour = mix(colour, ground, 0.6);
    if ((kind >> 8u) != ${NO_GROUP}u && extent.y > 4.0 * ratio) {
        bool edge = at.y < 0.8 * ratio;
        if (extent.x > 4.0 * ratio) {
            edge = edge || ((kind & ${EDGE_LEFT}u) != 0u && at.x < 0.8 * ratio);
            edge = edge || ((kind & ${EDGE_RIGHT}u) != 0u && at.x > extent.x - 0.8 * ratio);
        }
        if (edge) colour = mix(colour, ground, 0.55);
    }
    result = vec4(colour, 1.0);
}`;

function compile(gl: WebGL2RenderingContext): WebGLProgram | null {
    const program = gl.createProgram()!;
    for (const [type, source] of [
        [gl.VERTEX_SHADER, VERTEX],
        [gl.FRAGMENT_SHADER, FRAGMENT],
    ] as const) {
        const shader = gl.createShader(type)!;
        gl.shaderSource(shader, source);
        gl.compileShader(shader);
        gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    return gl.getProgramParameter(program, gl.LINK_STATUS) ? program : null;
}

// Names of software renderers.
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

let gpuFound: boolean | undefined;

// Returns whether WebGL2 has a GPU. Without one, painting in the worker is several times faster.
export function hasGpu(): boolean {
    if (gpuFound !== undefined) return gpuFound;
    const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
    const info = gl?.getExtension("WEBGL_debug_renderer_info");
    const name = gl ? String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER)) : "";
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
    return (gpuFound = gl !== null && !SOFTWARE.test(name));
}

export class WebGlPainter implements Painter {
    readonly kind = "webgl2";
    readonly whole = false;
    private program!: WebGLProgram;
    private vertices!: WebGLVertexArrayObject;
    private buffers!: { rect: WebGLBuffer; colour: WebGLBuffer; info: WebGLBuffer };
    private quads: QuadColumns | null = null;
    private picture: Picture | null = null;

    private constructor(
        private readonly canvas: HTMLCanvasElement,
        private readonly gl: WebGL2RenderingContext,
    ) {
        canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
        canvas.addEventListener("webglcontextrestored", () => {
            if (this.prepare() && this.quads) this.fill(this.quads);
        });
    }

    // Returns null if WebGL2 is missing or does not work.
    static create(canvas: HTMLCanvasElement): WebGlPainter | null {
        const gl = canvas.getContext("webgl2", { alpha: true, antialias: false, premultipliedAlpha: true, preserveDrawingBuffer: false });
        if (!gl) return null;
        const painter = new WebGlPainter(canvas, gl);
        return painter.prepare() ? painter : null;
    }

    private prepare(): boolean {
        const { gl } = this;
        const program = compile(gl);
        if (!program) return false;
        this.program = program;
        this.vertices = gl.createVertexArray()!;
        this.buffers = { rect: gl.createBuffer()!, colour: gl.createBuffer()!, info: gl.createBuffer()! };
        gl.bindVertexArray(this.vertices);
        const attribute = (name: string, buffer: WebGLBuffer, define: (place: number) => void) => {
            const place = gl.getAttribLocation(program, name);
            gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
            gl.enableVertexAttribArray(place);
            define(place);
            gl.vertexAttribDivisor(place, 1);
        };
        attribute("rect", this.buffers.rect, (place) => gl.vertexAttribPointer(place, 4, gl.FLOAT, false, 0, 0));
        attribute("colour", this.buffers.colour, (place) => gl.vertexAttribPointer(place, 4, gl.UNSIGNED_BYTE, true, 0, 0));
        attribute("info", this.buffers.info, (place) => gl.vertexAttribIPointer(place, 1, gl.UNSIGNED_INT, 0, 0));
        return true;
    }

    async load(picture: Picture | null): Promise<boolean> {
        if (picture) {
            this.picture = picture;
            this.fill((this.quads = shapesOf(picture)));
        }
        return true;
    }

    clear(): void {
        this.quads = this.picture = null;
    }

    private fill(quads: QuadColumns): void {
        const { gl } = this;
        const fill = (buffer: WebGLBuffer, data: ArrayBufferView) => {
            gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
            gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
        };
        fill(this.buffers.rect, quads.rect.subarray(0, 4 * quads.count));
        fill(this.buffers.colour, quads.colour.subarray(0, 4 * quads.count));
        fill(this.buffers.info, quads.info.subarray(0, quads.count));
    }

    // Draws on a canvas as large as the box.
    place({ from, to, low, high, box, ratio }: Shown, emphasis: Emphasis, ground: Rgb): void {
        const { gl, picture } = this;
        const width = Math.round(box.width * ratio);
        const height = Math.round(box.height * ratio);
        if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
        this.canvas.style.width = `${box.width}px`;
        this.canvas.style.height = `${box.height}px`;
        gl.viewport(0, 0, width, height);
        gl.clearColor(0, 0, 0, 0);
        gl.clear(gl.COLOR_BUFFER_BIT);
        if (!picture || !this.quads || this.quads.count === 0) return;
        const across = width / (to - from);
        const up = height / (high - low);
        gl.useProgram(this.program);
        gl.bindVertexArray(this.vertices);
        const uniform = (name: string) => gl.getUniformLocation(this.program, name);
        gl.uniform4f(uniform("place"), (picture.from - from) * across, (picture.to - picture.from) * across, (high - picture.high) * up, (picture.high - picture.low) * up);
        gl.uniform2f(uniform("size"), width, height);
        gl.uniform2f(uniform("emphasis"), emphasis.group, emphasis.matches ? 1 : 0);
        gl.uniform3f(uniform("ground"), ground[0] / 255, ground[1] / 255, ground[2] / 255);
        gl.uniform3f(uniform("faint"), emphasis.faint[0] / 255, emphasis.faint[1] / 255, emphasis.faint[2] / 255);
        gl.uniform1f(uniform("ratio"), ratio);
        gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, this.quads.count);
    }
}
