/** A process that runs the tasks of the shop, and serves no client. */
import { makeShop } from "./shop.ts"

const { shop } = makeShop(process.argv[2]!, 1)
const worker = await shop.startWorker()
process.once("SIGTERM", () => void worker.close())
