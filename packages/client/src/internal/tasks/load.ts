/**
 * What follows tasks, loaded with the first of them: most clients never see one.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Effect from "effect/Effect"
import type { ClientError } from "../../ClientError.ts"
import type { Desk } from "../calls/call.ts"
import type { Created } from "./taskRegistry.ts"

/** The module. */
export const driver = Effect.promise(() => import("./taskClient.ts"))

/** Sees a call through to its result. */
export const finish = (desk: Desk, created: Created): Effect.Effect<CallToolResult, ClientError> =>
  // From here on there is a task, which the call may not lose.
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(driver, ({ follow, seeThrough }) => seeThrough(follow(desk, created), restore))
  )
