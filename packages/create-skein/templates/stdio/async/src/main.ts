/** Serves a client over stdin and stdout. */
import { server } from "./server.ts"

server.runStdio()
