/**
 * Progress: reports the progress of the current request to its client.
 *
 * @example
 * const count = Tool.layer(Tool.make("count"), () =>
 *   Effect.as(
 *     Effect.forEach([1, 2, 3], (n) =>
 *       Effect.andThen(Effect.sleep("1 second"), Progress.report({ progress: n, total: 3 }))),
 *     "Done"
 *   ))
 */
import { McpRequest, type Progress } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"

export type { Progress } from "@skein/runtime/RequestContext"

/**
 * Reports progress to the client, if the client requested reports. `progress` must grow with every report; a report
 * that does not grow is not sent, nor is a report after the end of the request. `message` needs 2025-03-26. Suspends
 * while the client is slow to read.
 *
 * @example
 * yield* Progress.report({ progress: done, total: files.length, message: `read ${file}` })
 */
export const report = (progress: Progress): Effect.Effect<void, never, McpRequest> =>
  Effect.flatMap(McpRequest, (request) => request.progress(progress))
