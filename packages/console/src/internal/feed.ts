/**
 * Sends the tree to viewers: all of it first, then the differences at an interval. Without viewers, no fiber runs and
 * no source is read.
 */
import type { HttpAnswer } from "@skein/server/Http"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { Hello } from "./messages.ts"
import { changes, type Tree } from "./tree.ts"

/** The options of a feed. */
export interface FeedOptions {
  readonly read: Effect.Effect<Tree>
  readonly hello: Hello
  readonly maxViewers: number
  readonly maxRowsPerMessage: number
  readonly scope: Scope.Scope
  readonly context: Context.Context<never>
}

const streamHeaders = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff"
}

const event = (name: string, data: unknown): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

/** One open page, or one `skein top`. */
class Viewer {
  readonly answer: HttpAnswer
  /** The tree that it has received. */
  #seen: Tree | undefined = undefined
  /** Whether its last change is not sent completely: it is slow. Later changes are then left out. */
  #isSending = false
  readonly #feed: Feed

  constructor(feed: Feed, answer: HttpAnswer) {
    this.#feed = feed
    this.answer = answer
  }

  /** Sends the changes up to this tree, unless earlier ones still wait. */
  show(tree: Tree): void {
    if (this.#isSending || this.answer.isClosed) return
    const { maxRowsPerMessage } = this.#feed.options
    const events = changes(this.#seen, tree, maxRowsPerMessage)
    this.#seen = tree
    const send = (): boolean => {
      // Not a loop over the generator: leaving the loop would end the generator.
      for (let next = events.next(); next.done !== true; next = events.next()) {
        if (!this.answer.write(event("rows", next.value))) return false
      }
      return true
    }
    if (send()) return
    this.#isSending = true
    const wait: Effect.Effect<void> = Effect.flatMap(
      this.answer.drained,
      () => this.answer.isClosed || send() ? Effect.sync(() => void (this.#isSending = false)) : wait
    )
    this.#feed.fork(wait)
  }
}

/** The viewers of a console. */
export class Feed {
  readonly options: FeedOptions
  readonly #viewers = new Set<Viewer>()
  #reading: Fiber.Fiber<void> | undefined = undefined
  /** The last tree, while there are viewers. */
  #latest: Tree | undefined = undefined

  constructor(options: FeedOptions) {
    this.options = options
  }

  /** How many viewers are connected. */
  get viewers(): number {
    return this.#viewers.size
  }

  /** Opens the stream of a viewer. Returns `false` at `maxViewers`, and then the answer is untouched. */
  add(answer: HttpAnswer): boolean {
    if (this.#viewers.size >= this.options.maxViewers) return false
    const viewer = new Viewer(this, answer)
    answer.open(200, streamHeaders)
    answer.write(`retry: 1000\n\n${event("hello", this.options.hello)}`)
    this.#viewers.add(viewer)
    answer.onClose(() => this.#remove(viewer))
    if (answer.isClosed) this.#remove(viewer)
    else if (this.#latest !== undefined) viewer.show(this.#latest)
    if (this.#viewers.size > 0) this.#reading ??= this.fork(this.#run)
    return true
  }

  #remove(viewer: Viewer): void {
    this.#viewers.delete(viewer)
    if (this.#viewers.size > 0) return
    this.#reading?.interruptUnsafe()
    this.#reading = undefined
    this.#latest = undefined
  }

  get #run(): Effect.Effect<void> {
    const { hello, read } = this.options
    const once = Effect.map(read, (tree) => {
      this.#latest = tree
      for (const viewer of this.#viewers) viewer.show(tree)
    })
    const logged = Effect.catchCause(
      once,
      (cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.failCause(cause)
          : Effect.logError("console: failed to read the tree", cause)
    )
    return Effect.forever(Effect.andThen(logged, Effect.sleep(hello.interval)))
  }

  /** Runs an effect until the console closes. */
  fork<A, E>(effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> {
    const fiber = Effect.runForkWith(this.options.context)(effect)
    if (fiber.pollUnsafe() === undefined) Fiber.runIn(fiber, this.options.scope)
    return fiber
  }

  /** Ends the streams of all viewers. */
  close(): void {
    for (const { answer } of this.#viewers) answer.end()
    this.#viewers.clear()
    this.#reading?.interruptUnsafe()
    this.#reading = undefined
  }
}
