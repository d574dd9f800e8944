/**
 * The changes of a pool, for streams that may be read slowly: each run has the names of the servers that have changed
 * since its last element, so that no change is lost and memory is bounded by the number of servers.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"

/** The names of the servers that have changed since the previous element of the stream. */
export interface PoolChange {
  /** Servers that were added or removed, or whose state has changed. */
  readonly servers: ReadonlyArray<string>
  /** Servers whose list of tools has changed. */
  readonly tools: ReadonlyArray<string>
  /** Servers whose list of prompts has changed. */
  readonly prompts: ReadonlyArray<string>
  /** Servers whose list of resources, or of resource templates, has changed. */
  readonly resources: ReadonlyArray<string>
}

/** A part of a server that can change. */
export type Aspect = keyof PoolChange

const aspects: ReadonlyArray<Aspect> = ["servers", "tools", "prompts", "resources"]

class Run {
  readonly queue: Queue.Queue<void, Cause.Done>
  readonly changed: { readonly [A in Aspect]: Set<string> }

  constructor(queue: Queue.Queue<void, Cause.Done>, names: ReadonlyArray<string>) {
    this.queue = queue
    this.changed = { servers: new Set(names), tools: new Set(), prompts: new Set(), resources: new Set() }
  }

  take(): PoolChange {
    const taken = {
      servers: [...this.changed.servers],
      tools: [...this.changed.tools],
      prompts: [...this.changed.prompts],
      resources: [...this.changed.resources]
    }
    for (const aspect of aspects) this.changed[aspect].clear()
    return taken
  }
}

/** Collects changes for the runs of a stream. */
export class PoolChanges {
  readonly #names: () => ReadonlyArray<string>
  readonly #maxServers: number
  readonly #runs = new Set<Run>()
  #isEnded = false

  /** `names` returns the present servers, which are the first element of each run. */
  constructor(names: () => ReadonlyArray<string>, maxServers: number) {
    this.#names = names
    this.#maxServers = maxServers
  }

  publish(aspect: Aspect, name: string): void {
    for (const { changed, queue } of this.#runs) {
      changed[aspect].add(name)
      // Only names of removed servers can exceed the bound: the oldest is forgotten.
      const [oldest] = changed[aspect]
      if (changed[aspect].size > 2 * this.#maxServers) changed[aspect].delete(oldest!)
      Queue.offerUnsafe(queue, undefined)
    }
  }

  end(): void {
    this.#isEnded = true
    for (const { queue } of this.#runs) Queue.endUnsafe(queue)
    this.#runs.clear()
  }

  get stream(): Stream.Stream<PoolChange> {
    return Stream.unwrap(Effect.gen({ self: this }, function*() {
      const queue = yield* Queue.make<void, Cause.Done>({ capacity: 1, strategy: "sliding" })
      const run = new Run(queue, this.#names())
      Queue.offerUnsafe(queue, undefined)
      if (this.#isEnded) Queue.endUnsafe(queue)
      else this.#runs.add(run)
      yield* Effect.addFinalizer(() => Effect.sync(() => this.#runs.delete(run)))
      return Stream.filter(
        Stream.map(Stream.fromQueue(queue), () => run.take()),
        (change) => aspects.some((aspect) => change[aspect].length > 0)
      )
    }))
  }
}
