// #region express
import * as NodeHttp from "@skein/server/NodeHttp"
import express from "express"
import { Hello } from "./hello.ts"

const mcp = await NodeHttp.mount(Hello, { allowedHosts: ["localhost", "mcp.example.com"] })

const app = express()
app.get("/health", (_request, response) => response.send("ok"))
app.all("/mcp", mcp.handler)
const listener = app.listen(3000, "127.0.0.1")

process.once("SIGTERM", async () => {
  listener.close() // Accepts no new connections, and waits for open ones.
  await mcp.close() // Ends requests in flight within `shutdownTimeout`.
})
// #endregion
