// #region hono
import * as WebHttp from "@skein/server/WebHttp"
import { Hono } from "hono"
import { Hello } from "./hello.ts"

const mcp = WebHttp.mount(Hello, {
  allowedHosts: ["mcp.example.com"],
  principal: (request) => {
    const token = request.headers.get("authorization")
    return token === "Bearer ada" ? { id: "ada" } : undefined
  }
})

const app = new Hono()
app.get("/health", (c) => c.text("ok"))
app.all("/mcp", (c) => mcp.handler(c.req.raw))

export default app
// #endregion
