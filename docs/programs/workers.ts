// #region workers
import * as WebHttp from "@skein/server/WebHttp"
import { Hello } from "./hello.ts"

const { handler } = WebHttp.mount(Hello, { allowedHosts: ["mcp.example.com"], stateless: true })

export default { fetch: (request: Request) => handler(request) }
// #endregion
