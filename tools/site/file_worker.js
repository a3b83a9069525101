// The search of the site runs in a worker, which a page that was opened as a file may not start. There its script runs in a frame.
if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            this.frame = document.createElement("iframe");
            this.frame.hidden = true;
            document.body.append(this.frame);
            const inside = this.frame.contentWindow;
            this.send = inside.postMessage.bind(inside);
            inside.postMessage = (data) => this.answer(new MessageEvent("message", { data }));
            const script = inside.document.createElement("script");
            script.src = url;
            this.ready = new Promise((resolve) => (script.onload = resolve));
            inside.document.body.append(script);
        }
        answer(event) {
            this.dispatchEvent(event);
            this.onmessage?.(event);
        }
        postMessage(data) {
            void this.ready.then(() => this.send(data, "*"));
        }
        terminate() {
            this.frame.remove();
        }
    };
}
