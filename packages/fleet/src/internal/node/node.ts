/**
 * A node of a fleet: its `Fleet` and its `EventBus`, over the backend of a database.
 */
import * as Listeners from "@skein/runtime/Listeners"
import { type Change, EventBus } from "@skein/server/EventBus"
import {
  Fleet,
  FleetError,
  type Message,
  type Receiver,
  type SessionBounds,
  type SessionChange
} from "@skein/server/Fleet"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import * as Semaphore from "effect/Semaphore"
import type * as Scope from "effect/Scope"
import type { Backend } from "./backend.ts"
import { decode, encode } from "./envelope.ts"
import { Outbox } from "./outbox.ts"
import { Receipts } from "./receipts.ts"
import { Arrivals, historyMillis } from "./resending.ts"
import { SessionIds } from "./sessionIds.ts"

// Milliseconds.
const touchInterval = 1_000
const cleanInterval = 5_000
const operationTimeout = 10_000
const leaveTimeout = 2_000
// How long the publisher of a change waits until it is sent.
const publishTimeout = 1_000

const within = <A>(operation: Effect.Effect<A, FleetError>): Effect.Effect<A, FleetError> =>
  Effect.timeoutOrElse(operation, {
    duration: operationTimeout,
    orElse: () =>
      Effect.fail(new FleetError({ message: `the database has not answered within ${operationTimeout} ms` }))
  })

const lists: ReadonlyArray<Change> = [
  { _tag: "List", kind: "tools" },
  { _tag: "List", kind: "resources" },
  { _tag: "List", kind: "prompts" }
]

/** Whether a change depends on others. Each session is initialized once, and its node knows that already. */
const isOrdered = ({ isInitialized, ...others }: SessionChange): boolean =>
  isInitialized !== true || Object.keys(others).length > 0

/** Runs an effect again and again, and logs the first of several failures in succession. */
const repeat = (what: string, effect: Effect.Effect<void, FleetError>): Effect.Effect<never> => {
  let hasFailed = false
  return Effect.forever(Effect.matchEffect(effect, {
    onFailure: (error) => {
      if (hasFailed) return Effect.void
      hasFailed = true
      return Effect.logWarning(`failed to ${what}`, error)
    },
    onSuccess: () => Effect.sync(() => void (hasFailed = false))
  }))
}

/**
 * Makes the services of a node, which leaves the fleet when the scope closes. `leaseMillis` is the time after which the
 * others take it for gone.
 */
export const makeNode = (
  backend: Backend,
  leaseMillis: number
): Effect.Effect<Context.Context<Fleet | EventBus>, FleetError, Scope.Scope> =>
  Effect.gen(function*() {
    const { node } = backend
    const clock = yield* Clock.Clock
    const ids = new SessionIds(backend.key)
    const now = (): number => clock.currentTimeMillisUnsafe()
    const outbox = new Outbox(node, backend.send, now)
    const arrivals = new Arrivals()
    const receipts = new Receipts(node)
    const receivers = Listeners.make<Receiver>()
    const changes = Listeners.make<(change: Change) => void>()
    const refresh = yield* Queue.sliding<void>(1)
    const run = yield* FiberSet.makeRuntime<never>()
    let members = new Set([node])
    const lease = Semaphore.makeUnsafe(1)
    let renewals = 0
    let isRenewing = false
    let bounds: SessionBounds | undefined
    let renewedAt = now()
    let gapAt = -Infinity

    // ---- messages

    const publish = (change: Change): void => changes.all.forEach((onChange) => onChange(change))

    const onGap = (): void => {
      for (const receiver of receivers.all) receiver.gap()
      lists.forEach(publish)
      Queue.offerUnsafe(refresh, undefined)
    }

    const onLostConnection = (): void => {
      gapAt = now()
      receipts.gap()
      onGap()
      outbox.add(undefined, { _tag: "Resend", after: arrivals.highest() })
    }

    /** Confirms a change. The node that now has a stream reads the events of this one afterwards. */
    const confirm = (to: number, change: number, message: Message): void => {
      if (message._tag !== "Changed" || message.change.listensAt === undefined) return outbox.confirm(to, change)
      const flushed = Effect.forEach(receivers.all, ({ flush }) => flush ?? Effect.void, { discard: true })
      run(Effect.andThen(flushed, Effect.sync(() => outbox.confirm(to, change))))
    }

    const onText = (text: string): void => {
      const received = decode(text)
      if (received === undefined) return
      const { content, from, number } = received
      if (number !== undefined && !arrivals.add(from, number)) return
      switch (content._tag) {
        case "Session":
          // The sender receives it, too.
          if (from === node && content.isForOthers === true) return
          for (const receiver of receivers.all) receiver.message(content.message)
          if (content.change === undefined) return
          if (from === node) receipts.receive(content.change, node)
          else confirm(from, content.change, content.message)
          return
        case "Published":
          return publish(content.change)
        case "Confirmed":
          for (const change of content.changes) receipts.receive(change, from)
          return
        case "Members":
          // A query of each node, whenever one joins or leaves, would be too many for a deploy of many nodes.
          if (from === node) return
          if (content.isServing) members.add(from)
          else members.delete(from)
          // The database may have read the nodes before.
          if (isRenewing) Queue.offerUnsafe(refresh, undefined)
          return
        case "Resend":
          outbox.resend(from, content.after[node] ?? 0)
          // The other node may not have received the request of this one.
          if (from !== node && content.isAnswer !== true && now() - gapAt < historyMillis) {
            outbox.add(from, { _tag: "Resend", after: arrivals.highest(), isAnswer: true })
          }
      }
    }

    /** Stores a change and waits until the nodes that have the session have received it, or returns `false`. */
    const stored = (
      message: Message,
      isEchoed: boolean,
      store: (text: string) => Effect.Effect<ReadonlyArray<number>, FleetError>
    ): Effect.Effect<boolean, FleetError> =>
      // The messages that were sent before are received before.
      Effect.andThen(
        within(outbox.flushed),
        receipts.await(
          isEchoed,
          (change) => within(store(encode({ from: node, content: { _tag: "Session", message, change } })))
        )
      )

    // ---- the lease

    const renewOnce = Effect.suspend(() => {
      const at = now()
      renewals++
      isRenewing = true
      const renewed = Effect.ensuring(within(backend.renew), Effect.sync(() => void (isRenewing = false)))
      return Effect.map(renewed, ({ nodes, wasLost }) => {
        members = new Set(nodes)
        arrivals.retain(members, now())
        // The others may not have waited for this node.
        if (wasLost || at - renewedAt > leaseMillis) onGap()
        renewedAt = at
      })
    })
    const renew = lease.withPermit(renewOnce)

    const hasGone = (other: number): Effect.Effect<boolean, FleetError> =>
      Effect.suspend(() => {
        if (members.has(other)) return Effect.succeed(false)
        // A renewal that runs may have read the nodes before, and one that waits serves all who wait.
        const before = renewals
        const isKnown = Effect.suspend(() => renewals > before ? Effect.void : renewOnce)
        return Effect.map(lease.withPermit(isKnown), () => !members.has(other))
      })

    // ---- sessions in use

    const touched = new Set<string>()
    const hasTouched = Latch.makeUnsafe(false)
    const touch = Effect.suspend(() => {
      hasTouched.closeUnsafe()
      const used = [...touched]
      touched.clear()
      return used.length === 0 ? Effect.void : Effect.tapError(within(backend.touch(used)), () =>
        Effect.sync(() => {
          for (const id of used) touched.add(id)
          hasTouched.openUnsafe()
        }))
    })

    const clean = Effect.flatMap(
      Effect.suspend(() => backend.clean(bounds === undefined ? undefined : bounds.maxSessions * members.size)),
      (ended) =>
        Effect.sync(() => {
          for (const id of ended) {
            const message: Message = { _tag: "Ended", id }
            outbox.add(undefined, { _tag: "Session", message, isForOthers: true })
            for (const receiver of receivers.all) receiver.message(message)
          }
        })
    )

    yield* Effect.addFinalizer(() => {
      outbox.add(undefined, { _tag: "Members", isServing: false })
      const left = Effect.andThen(Effect.ignore(touch), Effect.andThen(backend.leave, outbox.flush))
      // A finalizer is not interruptible, and the database may be down.
      return Effect.ignore(Effect.timeoutOption(Effect.interruptible(left), leaveTimeout))
    })
    yield* backend.receive(onText, onLostConnection)
    yield* renew
    outbox.add(undefined, { _tag: "Members", isServing: true })
    yield* Effect.forkScoped(outbox.run)
    const pause = Effect.timeoutOption(Queue.take(refresh), leaseMillis / 3)
    yield* Effect.forkScoped(repeat("renew the lease of this node", Effect.andThen(pause, renew)))
    yield* Effect.forkScoped(
      repeat("update the sessions in use", Effect.andThen(hasTouched.await, Effect.delay(touch, touchInterval)))
    )
    yield* Effect.forkScoped(repeat("delete expired sessions", Effect.delay(clean, cleanInterval)))

    const fleet = Fleet.of({
      node,
      newId: () => ids.make(node),
      isKnown: (id) => ids.isKnown(id),
      isServing: (other) => members.has(other),
      hasGone,
      create: (record, given, client) =>
        Effect.suspend(() => {
          bounds = given
          return within(backend.create(record, given, client))
        }),
      // The session may be one of a node that this one does not know yet.
      find: (id, principalId) =>
        Effect.tap(
          within(backend.find(id, principalId)),
          (record) => record === undefined ? Effect.void : Effect.ignore(hasGone(record.listensAt))
        ),
      change: (id, change) => {
        const isEchoed = isOrdered(change)
        return stored({ _tag: "Changed", id, change }, isEchoed, (text) => backend.change(id, change, text, isEchoed))
      },
      end: (id) => Effect.asVoid(stored({ _tag: "Ended", id }, true, (text) => backend.end(id, text))),
      touch: (id) => {
        touched.add(id)
        hasTouched.openUnsafe()
      },
      broadcast: (message) => outbox.add(undefined, { _tag: "Session", message, isForOthers: true }),
      send: (to, message) => outbox.add(to, { _tag: "Session", message }),
      receive: receivers.add
    })
    const bus = EventBus.of({
      publish: (change) =>
        Effect.suspend(() => {
          outbox.add(undefined, { _tag: "Published", change })
          return Effect.asVoid(Effect.timeoutOption(outbox.flushed, publishTimeout))
        }),
      subscribe: changes.add
    })
    return Context.make(Fleet, fleet).pipe(Context.add(EventBus, bus))
  })
