// Limits questions that come faster than answers: one is asked at a time, and of waiting ones only the newest.
import type { Engine, Question } from "./engine";
import type { Answer } from "./protocol";
import { prepare } from "./working";

// Returns a function that asks the engine a question. Its promise resolves to null if a newer question overtook this one; it is rejected
// only for the newest question. With `tell`, the answer's basis is first prepared in pieces, so that a newer question waits for at most one
// piece.
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
