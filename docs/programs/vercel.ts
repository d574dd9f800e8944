// #region vercel
import * as WebHttp from "@skein/server/WebHttp"
import { Greeter } from "./functions.ts"

const { handler } = WebHttp.mount(Greeter, {
  path: "/api/mcp",
  allowedHosts: ["my-server.vercel.app"],
  stateless: true
})

export default { fetch: (request: Request) => handler(request) }
// #endregion
