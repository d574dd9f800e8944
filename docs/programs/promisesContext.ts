import type { AsyncHandler, HandlerContext } from "@skein/server/HandlerContext"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import { AsyncLocalStorage } from "node:async_hooks"
import { z } from "zod"

const running = new AsyncLocalStorage<HandlerContext>()

export const withContext =
  <Input, A>(handler: AsyncHandler<Input, A, never>): AsyncHandler<Input, A, never> => (input, context) =>
    running.run(context, () => handler(input, context))

export const getContext = (): HandlerContext => {
  const context = running.getStore()
  if (context === undefined) throw new Error("getContext was called outside of a handler")
  return context
}

const pack = async (tea: string): Promise<string> => {
  const answer = await getContext().elicit(`How much ${tea}?`, z.object({ grams: z.int() }))
  return answer.action === "accept" ? `${answer.content.grams} g of ${tea}` : "nothing"
}

const order = Tool.async(
  Tool.make("order", { input: z.object({ tea: z.string() }) }),
  withContext(async ({ tea }) => `You get ${await pack(tea)}`)
)

export const Packing = McpServer.layer({ name: "packing", version: "1.0.0" }, order)
