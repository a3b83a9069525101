// Questions that come faster than answers: one is under way, of those that wait only the newest is asked.
import type { Engine, Question } from "./engine";
import type { Answer } from "./protocol";
import { prepare } from "./working";

// Asks; resolves to null for a question that a newer one overtook. Errors are those of the newest question. With `tell` what the answer is
// made of is worked out in pieces before, and a newer question need not wait for more than one of them.
export function latest<T = Record<string, unknown>>(engine: Engine, tell?: (share: number | null) => void): (question: Question) => Promise<Answer<T> | null> {
    let waiting: { question: Question; resolve(answer: Answer<T> | null): void; reject(error: unknown): void } | null = null;
    let busy = false;
    async function answerTo(question: Question): Promise<Answer<T> | null> {
        if (tell && !(await prepare(engine, question, tell, () => waiting !== null))) return null;
        return engine.ask<T>(question);
    }
    async function run(): Promise<void> {
        if (busy) return;
        busy = true;
        while (waiting) {
            const { question, resolve, reject } = waiting;
            waiting = null;
            try {
                const answer = await answerTo(question);
                resolve(waiting ? null : answer);
            } catch (error) {
                if (waiting) resolve(null);
                else reject(error);
            }
        }
        busy = false;
    }
    return (question) =>
        new Promise((resolve, reject) => {
            waiting?.resolve(null);
            waiting = { question, resolve, reject };
            void run();
        });
}
