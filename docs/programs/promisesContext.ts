import { AsyncLocalStorage } from "node:async_hooks"
import { AsyncServer, type Handler, type HandlerContext } from "skein"
import { z } from "zod"

const running = new AsyncLocalStorage<HandlerContext>()

export const withContext = <Input, A>(handler: Handler<Input, A>): Handler<Input, A> => (input, context) =>
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

export const server = new AsyncServer({ name: "packing", version: "1.0.0" })
  .tool("order", { input: z.object({ tea: z.string() }) }, withContext(async ({ tea }) => `You get ${await pack(tea)}`))
