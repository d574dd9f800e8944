/** The listener of reopened connections, and the failure of a supervisor. */
import { assert, describe, it } from "@effect/vitest"
import type { SessionEnd } from "@skein/runtime/Session"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { ClientError } from "../../src/ClientError.ts"
import { CallClock } from "../../src/internal/base/callClock.ts"
import * as Supervisor from "../../src/internal/connection/supervisor.ts"
import type { ConnectionOwner, NegotiatedConnection } from "../../src/internal/connection/connection.ts"
import * as Reconnect from "../../src/Reconnect.ts"
import { endMessage, quiet, until } from "./support.ts"

const policy = Reconnect.resolve({ jitter: "none" })

/** A supervisor whose connections can only end. */
const keeping = (
  opening: () => Effect.Effect<void> = () => Effect.void,
  reopened: Supervisor.SupervisorListener["reopened"] = () => Effect.void,
  log: Array<string> = []
) =>
  Effect.gen(function*() {
    const ends: Array<(end: SessionEnd) => void> = []
    const source: Supervisor.ConnectionSource = {
      context: yield* Effect.context<never>(),
      callClock: new CallClock(),
      open: (_last, _fresh, owned) => {
        const scope = Scope.makeUnsafe()
        owned(scope)
        return Effect.acquireRelease(
          Effect.sync(() => {
            let owner: ConnectionOwner | undefined
            const line = {
              revision: "2025-11-25",
              agreement: {},
              onEnd: (next: ConnectionOwner) => {
                owner = next
              }
            } as unknown as NegotiatedConnection
            log.push(`open ${ends.push((end) => owner!.connectionEnded(line, end))}`)
            return line
          }),
          () => Effect.sync(() => log.push("closed"))
        ).pipe(
          Effect.tap(opening),
          Effect.tap(() => Effect.sync(() => log.push("opened"))),
          Scope.provide(scope),
          Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
        )
      }
    }
    const supervisor = yield* Supervisor.make(source, { reopened, ended: () => {} }, {
      policy,
      timeouts: { timeout: 60_000, maxTimeout: 3_600_000, maxRetries: 3, backoff: policy }
    })
    return {
      supervisor,
      log,
      lose: () => ends.at(-1)!({ _tag: "Lost", cause: ScriptedServer.lost() }),
      lines: () => ends.length
    }
  })

describe("the listener of reopened connections", () => {
  it.effect("runs for each of them before the queued calls, and ends with its connection", () =>
    Effect.gen(function*() {
      let isFirst = true
      const log: Array<string> = []
      const reopened = () => {
        if (!isFirst) return Effect.void
        isFirst = false
        return Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() => log.push("hook")),
          () => Effect.sync(() => log.push("unhook"))
        ))
      }
      const { supervisor, lines, lose } = yield* keeping(undefined, reopened, log)
      lose()
      const waiting = yield* Effect.forkChild(
        Effect.andThen(Effect.yieldNow, Effect.map(supervisor.after(supervisor.last), () => log.push("call"))),
        { startImmediately: true }
      )
      yield* quiet
      yield* TestClock.adjust(500)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(log, ["open 1", "opened", "closed", "open 2", "opened", "hook", "call"])
      lose()
      yield* until(() => supervisor.current === undefined)
      yield* TestClock.adjust(1_000)
      yield* until(() => lines() === 3)
      assert.deepStrictEqual(log.slice(7), ["unhook", "closed", "open 3", "opened"])
    }))

  it.effect("delays no call, and breaks no connection if it dies", () =>
    Effect.gen(function*() {
      const messages: Array<unknown> = []
      const logger = Logger.make<unknown, void>(({ message }) => void messages.push(message))
      const listeners = [
        () => Effect.never,
        () => Effect.die(new Error("boom")),
        () => {
          throw new Error("bang")
        }
      ]
      for (const reopened of listeners) {
        const { supervisor, lose } = yield* Effect.provide(keeping(undefined, reopened), Logger.layer([logger]))
        lose()
        yield* until(() => supervisor.current === undefined)
        yield* TestClock.adjust(500)
        yield* supervisor.connection
        yield* quiet
      }
      const defects = messages.filter((message) => String(message).includes("defect after a connection was reopened"))
      assert.strictEqual(defects.length, 2)
    }))
})

describe("a supervisor", () => {
  it.effect("fails the waiting calls and writes a log entry when it dies", () =>
    Effect.gen(function*() {
      const messages: Array<unknown> = []
      const logger = Logger.make<unknown, void>(({ message }) => void messages.push(message))
      let opened = 0
      const { supervisor, lose } = yield* Effect.provide(
        keeping(() => ++opened === 1 ? Effect.void : Effect.die(new Error("boom"))),
        Logger.layer([logger])
      )
      lose()
      yield* until(() => supervisor.current === undefined)
      const waiting = yield* Effect.forkChild(Effect.flip(supervisor.connection), { startImmediately: true })
      yield* TestClock.adjust(500)
      const error = yield* Fiber.join(waiting)
      assert.instanceOf(error, ClientError)
      assert.strictEqual(error.reason._tag, "Closed")
      assert.strictEqual(endMessage(yield* supervisor.ended), "defect while reconnecting")
      assert.isTrue(messages.some((message) => String(message).includes("defect while reconnecting")))
    }))
})
