import { AsyncClientPool, ClientError, NodeConfig, PoolError } from "skein/client"

/** Asks the user whether a server may do something. */
export type Confirm = (question: string, signal: AbortSignal) => Promise<boolean>

// #region pool
export const open = (file: string, confirm: Confirm) =>
  AsyncClientPool.fromConfig(NodeConfig.file(file), {
    watchInterval: "2 seconds",
    // `server.label` is the name of the server in the file.
    elicit: async ({ message, server }, { signal }) =>
      await confirm(`${server.label}: ${message}`, signal) ? { action: "accept", content: {} } : { action: "decline" }
  })
// #endregion

/** A line for each tool, or for a server that cannot be listed. */
export const inventory = async (pool: AsyncClientPool): Promise<ReadonlyArray<string>> =>
  (await pool.tools()).flatMap(({ error, items, server }) =>
    error === undefined ? items.map(({ name }) => `${server} ${name}`) : [`${server}: ${error.message}`]
  )

/** A call that a language model asks for, in the form of its provider. */
export interface ToolUse {
  readonly id: string
  readonly name: string
  readonly input: object
}

export type Model = (request: {
  readonly system: string
  readonly tools: ReadonlyArray<{ readonly name: string; readonly description?: string; readonly input_schema: object }>
}) => Promise<ReadonlyArray<ToolUse>>

// #region model
/** One turn: the model chooses tools, and receives their results. */
export const turn = async (pool: AsyncClientPool, model: Model, signal: AbortSignal) => {
  const { call, instructions, tools } = await pool.toolkit({ maxTools: 128 })
  const uses = await model({
    system: instructions,
    tools: tools.map(({ description = "", inputSchema, name }) => ({ name, description, input_schema: inputSchema }))
  })
  return Promise.all(uses.map(async ({ id, input, name }) => {
    try {
      const { content, isError = false } = await call(name, input, { signal })
      return { id, content, isError }
    } catch (error) {
      // The server failed, or the model has made up a name. It can try something else.
      if (!(error instanceof ClientError || error instanceof PoolError)) throw error
      return { id, content: [{ type: "text", text: error.message }], isError: true }
    }
  }))
}
// #endregion
