import { expect, it } from "@effect/vitest"
import { LimitExceeded, StoreError, TaskError } from "@skein/tasks/TaskError"
import * as Effect from "effect/Effect"

const failing = (reason: LimitExceeded | StoreError): Effect.Effect<string, TaskError> =>
  Effect.fail(new TaskError({ reason }))

it.effect("Effect.catchReason selects a reason of a TaskError", () =>
  Effect.gen(function*() {
    const caught = (reason: LimitExceeded | StoreError) =>
      failing(reason).pipe(Effect.catchReason("TaskError", "LimitExceeded", ({ message }) => Effect.succeed(message)))
    expect(yield* caught(new LimitExceeded({ message: "full" }))).toBe("full")
    const cause = new Error("away")
    const reason = new StoreError({ message: "no database", cause })
    const error = yield* Effect.flip(caught(reason))
    expect([error._tag, error.message, error.reason, error.cause]).toEqual(["TaskError", "no database", reason, reason])
    expect(reason.cause).toBe(cause)
  }))
