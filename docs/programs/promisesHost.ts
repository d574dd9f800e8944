/** A host whose client has promises. */
import { AsyncClient, ClientError } from "skein/client"
import { z } from "zod"

/** Asks the user for the value of a field. `undefined`: the user declines. */
export type Ask = (question: string, signal: AbortSignal) => Promise<string | undefined>

export const connect = (args: ReadonlyArray<string>, ask: Ask): Promise<AsyncClient> =>
  AsyncClient.connect({ command: process.execPath, args }, {
    info: { name: "my-host", version: "1.0.0" },
    // The signal aborts when the question is no longer open.
    elicit: async ({ message, requestedSchema }, { signal }) => {
      const content: Record<string, string> = {}
      for (const field of Object.keys(requestedSchema.properties)) {
        const value = await ask(`${message} ${field}: `, signal)
        if (value === undefined) return { action: "decline" }
        content[field] = value
      }
      return { action: "accept", content }
    },
    onLog: ({ data, level }) => console.error(level, data)
  })

// #region host
const Sum = z.object({ sum: z.number() })

/** The sum, or `undefined` if the server takes longer than ten seconds. */
export const add = async (
  client: AsyncClient,
  a: number,
  b: number,
  signal: AbortSignal
): Promise<number | undefined> => {
  try {
    const { sum } = await client.callTool("add", { a, b }, { output: Sum, signal, timeout: "10 seconds" })
    return sum
  } catch (error) {
    if (error instanceof ClientError && error.reason._tag === "Timeout") return undefined
    throw error
  }
}
// #endregion

/** Shows the tools, and shows them again when they have changed, until the client is closed. */
export const watch = async (client: AsyncClient, show: (tools: ReadonlyArray<string>) => void): Promise<void> => {
  for await (const change of client.changes({ tools: true })) {
    if (change._tag === "Gap") continue
    show((await client.listTools()).map(({ name }) => name))
  }
}
