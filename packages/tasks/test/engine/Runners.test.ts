import { describe, expect, it } from "@effect/vitest"
import { PersistenceError } from "effect/cluster/ClusterError"
import { MessageStorage } from "effect/cluster/MessageStorage"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import * as ShardId from "effect/cluster/ShardId"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { layerConfirmShards, layerRereadMessages } from "../../src/internal/engine/runners.ts"

const address = RunnerAddress.make("here", 0)
const [one, two, three, four] = ["1", "2", "3", "4"].map((id) => ShardId.fromString(`default:${id}`)) as [
  ShardId.ShardId,
  ShardId.ShardId,
  ShardId.ShardId,
  ShardId.ShardId
]

/** A store whose checks last until the test provides their results. */
const opened = Effect.gen(function*() {
  const looks: Array<ReadonlyArray<ShardId.ShardId>> = []
  const found = yield* Queue.unbounded<Effect.Effect<Array<ShardId.ShardId>, PersistenceError>>()
  const store = Layer.succeed(
    RunnerStorage,
    {
      refresh: (_address: RunnerAddress.RunnerAddress, shards: Iterable<ShardId.ShardId>) =>
        Effect.suspend(() => {
          looks.push([...shards])
          return Effect.flatten(Queue.take(found))
        })
    } as RunnerStorage["Service"]
  )
  const shardResets: Array<ReadonlyArray<ShardId.ShardId>> = []
  const messages = Layer.succeed(
    MessageStorage,
    {
      resetShards: (shards: Iterable<ShardId.ShardId>) => Effect.sync(() => void shardResets.push([...shards]))
    } as unknown as MessageStorage["Service"]
  )
  const scope = yield* Scope.fork(yield* Effect.scope)
  const context = yield* Layer.buildWithScope(Layer.provide(layerConfirmShards, [store, messages]), scope)
  const { refresh } = Context.get(context, RunnerStorage)
  const ask = (...shards: ReadonlyArray<ShardId.ShardId>) =>
    Effect.tap(Effect.forkChild(refresh(address, shards), { startImmediately: true }), () => Effect.yieldNow)
  const find = (...shards: ReadonlyArray<ShardId.ShardId>) =>
    Effect.andThen(Queue.offer(found, Effect.succeed([...shards])), Effect.yieldNow)
  return { shardResets, ask, find, found, looks, close: Scope.close(scope, Exit.void) }
})

describe("confirming the shards of a runner", () => {
  it.effect("callers that ask during a check share the next check, which begins after they have asked", () =>
    Effect.scoped(Effect.gen(function*() {
      const { ask, find, looks } = yield* opened
      const first = yield* ask(one)
      const rest = [yield* ask(two), yield* ask(three), yield* ask(two, four)]
      expect(looks).toEqual([[one]])
      yield* find(one)
      expect(yield* Fiber.join(first)).toEqual([one])
      yield* find(two, four)
      for (const asked of rest) expect(yield* Fiber.join(asked)).toEqual([two, four])
      expect(looks).toEqual([[one], [two, three, four]])
      const last = yield* ask(one)
      yield* find()
      expect(yield* Fiber.join(last)).toEqual([])
      expect(looks.length).toBe(3)
    })))

  it.effect("a failed check fails for all of its callers, and for no others", () =>
    Effect.scoped(Effect.gen(function*() {
      const { ask, find, found } = yield* opened
      const first = yield* ask(one)
      const second = yield* ask(two)
      yield* Queue.offer(found, Effect.fail(new PersistenceError({ cause: "gone" })))
      expect(Exit.isFailure(yield* Fiber.await(first))).toBe(true)
      yield* find(two)
      expect(yield* Fiber.join(second)).toEqual([two])
    })))

  it.effect("a caller that is interrupted does not affect the others", () =>
    Effect.scoped(Effect.gen(function*() {
      const { ask, find, looks } = yield* opened
      const first = yield* ask(one)
      const second = yield* ask(two)
      const third = yield* ask(three)
      yield* Fiber.interrupt(first)
      yield* Fiber.interrupt(second)
      yield* find(one)
      yield* find(two, three)
      expect(yield* Fiber.join(third)).toEqual([two, three])
      expect(looks).toEqual([[one], [two, three]])
    })))

  it.effect("a caller at shutdown waits for nothing", () =>
    Effect.scoped(Effect.gen(function*() {
      const { ask, close } = yield* opened
      const asked = [yield* ask(one), yield* ask(two)]
      yield* close
      asked.push(yield* ask(three))
      for (const each of asked) expect(Exit.hasInterrupts(yield* Fiber.await(each))).toBe(true)
    })))

  it.effect("a check of the database alone waits for no other check", () =>
    Effect.scoped(Effect.gen(function*() {
      const { ask, looks } = yield* opened
      yield* ask(one)
      yield* ask()
      expect(looks).toEqual([[one], []])
    })))

  it.effect("resets the shards that it has lost: immediately, and again when no read is under way", () =>
    Effect.scoped(Effect.gen(function*() {
      const { shardResets, ask, find } = yield* opened
      const asked = yield* ask(one, two, three)
      expect(shardResets).toEqual([])
      yield* find(two)
      expect(yield* Fiber.join(asked)).toEqual([two])
      yield* Effect.yieldNow
      expect(shardResets).toEqual([[one, three]])
      yield* TestClock.adjust("2 seconds")
      expect(shardResets).toEqual([[one, three], [one, three]])
      const again = yield* ask(two)
      yield* find(two)
      yield* Fiber.join(again)
      yield* TestClock.adjust("1 hour")
      expect(shardResets).toHaveLength(2)
    })))

  it.effect("after a failed check, the next one resets the shards, even if it checks the database alone", () =>
    Effect.scoped(Effect.gen(function*() {
      const { shardResets, ask, find, found } = yield* opened
      const failed = yield* ask(one, two)
      yield* Queue.offer(found, Effect.fail(new PersistenceError({ cause: "gone" })))
      yield* Fiber.await(failed)
      expect(shardResets).toEqual([])
      const probe = yield* ask()
      yield* find()
      yield* Fiber.join(probe)
      yield* Effect.yieldNow
      expect(shardResets).toEqual([[one, two]])
    })))
})

it.effect("after a read whose response was lost, the next read resets the shards first", () =>
  Effect.scoped(Effect.gen(function*() {
    const log: Array<string> = []
    let gone = true
    const store = Layer.succeed(
      MessageStorage,
      {
        unprocessedMessages: () =>
          Effect.suspend(() => {
            log.push("read")
            return gone ? Effect.fail(new PersistenceError({ cause: "gone" })) : Effect.succeed([])
          }),
        resetShards: (shards: Iterable<ShardId.ShardId>) =>
          Effect.sync(() => void log.push(`reset ${[...shards].map(({ id }) => id)}`))
      } as unknown as MessageStorage["Service"]
    )
    const context = yield* Layer.build(Layer.provide(layerRereadMessages, store))
    const { unprocessedMessages } = Context.get(context, MessageStorage)
    yield* Effect.flip(unprocessedMessages([one, two]))
    gone = false
    yield* unprocessedMessages([one, two])
    yield* unprocessedMessages([one, two])
    expect(log).toEqual(["read", "reset 1,2", "read", "read"])
  })))
