/**
 * The changes of this node that other nodes have yet to receive.
 */
import { FleetError } from "@skein/server/Fleet"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

// Milliseconds. A node that is stopped or cut off is not waited for longer; it reads the records again afterwards.
const confirmTimeout = 1_000
const ownTimeout = 5_000

interface Pending {
  readonly received: Set<number>
  /** The nodes that must receive it; undefined until they are known. */
  expected: ReadonlyArray<number> | undefined
  readonly own: Deferred.Deferred<void, FleetError>
  readonly all: Deferred.Deferred<void>
}

export class Receipts {
  readonly #node: number
  readonly #pending = new Map<number, Pending>()
  #last = 0

  constructor(node: number) {
    this.#node = node
  }

  /** How many changes are pending. */
  get size(): number {
    return this.#pending.size
  }

  /** A node has received a change. */
  receive(change: number, node: number): void {
    const pending = this.#pending.get(change)
    if (pending === undefined) return
    pending.received.add(node)
    if (node === this.#node) Deferred.doneUnsafe(pending.own, Effect.void)
    this.#settle(pending)
  }

  /** Messages to this node were lost: it may not receive its changes. */
  gap(): void {
    const lost = Effect.fail(new FleetError({ message: "the connection to the database was lost during a change" }))
    for (const { own } of this.#pending.values()) Deferred.doneUnsafe(own, lost)
  }

  #settle({ all, expected, received }: Pending): void {
    if (expected?.every((node) => received.has(node)) === true) Deferred.doneUnsafe(all, Effect.void)
  }

  /**
   * Stores a change with a number, and waits until the nodes that `store` returns have received it, for 1 second at most,
   * and this one, if it is echoed. Returns whether the others have. Fails if this node does not receive the echo within 5
   * seconds, or loses messages meanwhile: the change may be stored then.
   */
  await(
    isEchoed: boolean,
    store: (change: number) => Effect.Effect<ReadonlyArray<number>, FleetError>
  ): Effect.Effect<boolean, FleetError> {
    return Effect.suspend(() => {
      const change = ++this.#last
      const pending: Pending = {
        received: new Set(),
        expected: undefined,
        own: Deferred.makeUnsafe(),
        all: Deferred.makeUnsafe()
      }
      if (!isEchoed) Deferred.doneUnsafe(pending.own, Effect.void)
      this.#pending.set(change, pending)
      const confirmed = Effect.flatMap(store(change), (nodes) => {
        pending.expected = nodes
        this.#settle(pending)
        const own = Effect.timeoutOrElse(Deferred.await(pending.own), {
          duration: ownTimeout,
          orElse: () =>
            Effect.fail(
              new FleetError({ message: `this node has not received its own change within ${ownTimeout} ms` })
            )
        })
        const all = Effect.timeoutOption(Deferred.await(pending.all), confirmTimeout)
        return Effect.andThen(own, Effect.map(all, Option.isSome))
      })
      return Effect.ensuring(confirmed, Effect.sync(() => this.#pending.delete(change)))
    })
  }
}
