/**
 * The questions between the workers of a server, which their primary process passes on.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Answer, Phase, Service } from "@skein/runtime/Workers"
import { type FromPrimary, type FromWorker, primaryNumber } from "./messages.ts"

// How long a worker may take to answer, in milliseconds.
const answerTimeout = 1_000

type Answering = Parameters<Service["answer"]>[1]

interface Pending {
  readonly worker: number
  readonly answer: Deferred.Deferred<unknown>
}

/** The questions of one worker, and those that it answers. */
export class Questions implements Service {
  readonly number: number
  readonly instance: string
  readonly #send: (message: FromWorker) => void
  readonly #topics = new Map<string, (question: unknown, from: number) => Effect.Effect<unknown>>()
  readonly #pending = new Map<number, Pending>()
  #workers: ReadonlyArray<number> = []
  #phase: Phase = "starting"
  #last = 0

  constructor(
    number: number,
    welcome: Extract<FromPrimary, { readonly _tag: "Welcome" }>,
    send: (message: FromWorker) => void
  ) {
    this.number = number
    this.instance = welcome.instance
    this.#send = send
    this.setWorkers(welcome)
  }

  /** The primary process has announced the workers. */
  setWorkers({ phase, workers }: { readonly workers: ReadonlyArray<number>; readonly phase: Phase }): void {
    this.#workers = workers
    this.#phase = phase
    for (const { answer, worker } of this.#pending.values()) {
      if (worker !== primaryNumber && !workers.includes(worker)) Deferred.doneUnsafe(answer, Effect.undefined)
    }
  }

  /** The primary process has passed on a question, or an answer. */
  receive(message: Extract<FromPrimary, { readonly _tag: "Question" | "Answer" }>): void {
    if (message._tag === "Answer") {
      const pending = this.#pending.get(message.number)
      if (pending !== undefined) Deferred.doneUnsafe(pending.answer, Effect.succeed(message.content))
      return
    }
    const { content, from, number, topic } = message
    const answered = Effect.map(this.#answerOwn(topic, content, from), (answer) => {
      if (number !== undefined) this.#send({ _tag: "Answer", to: from, number, content: answer })
    })
    Effect.runFork(answered)
  }

  readonly phase = (): Phase => this.#phase

  readonly serving = (): ReadonlyArray<number> => this.#workers

  readonly answer: Service["answer"] = (topic, answer) =>
    Effect.contextWith((context) => {
      const run = (...question: Parameters<Answering>) =>
        Effect.provideContext(
          Effect.catchCause(answer(...question), (cause) =>
            Cause.hasInterruptsOnly(cause)
              ? Effect.undefined
              : Effect.as(Effect.logDebug(`workers: the answer to the question "${topic}" failed`, cause), undefined)),
          context
        )
      return Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => void this.#topics.set(topic, run)),
        () => Effect.sync(() => this.#topics.get(topic) === run ? void this.#topics.delete(topic) : undefined)
      ))
    })

  #answerOwn(topic: string, question: unknown, from: number): Effect.Effect<unknown> {
    return this.#topics.get(topic)?.(question, from) ?? Effect.undefined
  }

  readonly ask: Service["ask"] = (worker, topic, question, timeoutMs = answerTimeout) =>
    Effect.suspend(() => {
      const answered = worker === this.number
        ? this.#answerOwn(topic, question, worker)
        : this.#askOther(worker, topic, question)
      return Effect.timeoutOrElse(answered, { duration: timeoutMs, orElse: () => Effect.undefined })
    })

  #askOther(worker: number, topic: string, question: unknown): Effect.Effect<unknown> {
    if (worker !== primaryNumber && !this.#workers.includes(worker)) return Effect.undefined
    const number = ++this.#last
    const answer = Deferred.makeUnsafe<unknown>()
    this.#pending.set(number, { worker, answer })
    this.#send({ _tag: "Question", to: worker, number, topic, content: question })
    return Effect.ensuring(Deferred.await(answer), Effect.sync(() => this.#pending.delete(number)))
  }

  readonly askAll: Service["askAll"] = (topic, question, timeoutMs) =>
    Effect.suspend(() => {
      const workers = new Set([...this.#workers, this.number])
      const one = (worker: number): Effect.Effect<Answer> =>
        Effect.map(this.ask(worker, topic, question, timeoutMs), (answer) => ({ worker, answer }))
      return Effect.forEach([...workers].sort((one, other) => one - other), one, { concurrency: "unbounded" })
    })

  readonly tell: Service["tell"] = (topic, content) => this.#send({ _tag: "Question", to: undefined, topic, content })
}
