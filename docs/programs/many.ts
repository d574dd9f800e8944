import * as Client from "@skein/client/Client"
import * as ClientPool from "@skein/client/ClientPool"
import type { Transport } from "@skein/runtime/Connection"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"

// #region pool
export const inventory = (tea: Transport, notes: Transport, broken: Transport) =>
  Effect.gen(function*() {
    const pool = yield* ClientPool.make({
      tea: { transport: tea },
      notes: { transport: notes, options: { cache: false } },
      broken: { transport: broken, timeout: "5 seconds" }
    })
    const listed = yield* pool.tools // In parallel, each within 30 seconds.
    return listed.map(({ result, server }) =>
      Result.isSuccess(result)
        ? `${server}: ${result.success.map(({ name }) => name).join(", ")}`
        : `${server}: ${result.failure.message}`
    )
  })
// #endregion

export const bill = (pool: ClientPool.ClientPool["Service"]) =>
  Effect.flatMap(pool.client("tea"), (tea) => tea.callTool("bill", { tea: "sencha", cups: 2 }))

// #region toolkit
export const answer = (pool: ClientPool.ClientPool["Service"], prompt: string, asks: ReadonlyArray<string>) =>
  LanguageModel.generateText({
    prompt,
    toolkit: Client.toolkit(pool, {
      servers: (server) => server !== "notes",
      needsApproval: (_, { name }) => asks.includes(name)
    })
  })
// #endregion
