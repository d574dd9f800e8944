/** The process of the shop: it starts an order, unless there is one, and reports its payment and its end. */
import { AsyncServer } from "skein"
import { makeShop } from "./shop.ts"

const { buy, shop } = makeShop(process.argv[2]!, 1)
const answers = process.argv[3] === "answer"
const report = (message: object) => void process.send!(message)

const { close } = await new AsyncServer({ name: "shop", version: "1.0.0" }).use(shop).listen({ port: 0 })
const { id } = await shop.start(buy, { tea: "sencha" }, { key: "order 1" })
for await (const state of shop.watch(id)) {
  if (state.statusMessage === "Paid") report({ paid: id })
  const [question] = state.questions
  if (answers && question !== undefined) {
    await shop.answer(id, question.key, { action: "accept", content: { address: "Hafen 1" } })
  }
  if (state.outcome !== undefined) report({ ended: id, outcome: state.outcome })
}
await close()
process.disconnect()
