import * as WebHttp from "@skein/server/WebHttp"
import { Hello } from "./hello.ts"

const { handler } = WebHttp.mount(Hello, { allowedHosts: ["mcp.example.com"], stateless: true })

export { handler as DELETE, handler as GET, handler as OPTIONS, handler as POST }
