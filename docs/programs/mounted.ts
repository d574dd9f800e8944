// #region mounted
import express from "express"
import { AsyncServer } from "skein"
import { nodeHandler } from "skein/http"
import { z } from "zod"

const server = new AsyncServer({ name: "hello", version: "1.0.0" })
  .tool("greet", { input: z.object({ name: z.string() }) }, async ({ name }) => `Hello, ${name}!`)
const mcp = await nodeHandler(server, { allowedHosts: ["localhost", "mcp.example.com"] })

const app = express()
app.get("/health", (_request, response) => response.send("ok"))
app.all("/mcp", mcp.handler)
const listener = app.listen(3000, "127.0.0.1")

process.once("SIGTERM", async () => {
  listener.close() // Accepts no new connections, and waits for open ones.
  await mcp.close() // Ends requests in flight within `shutdownTimeout`.
})
// #endregion
