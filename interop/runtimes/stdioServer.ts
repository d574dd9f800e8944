/** The server of this folder over stdio. */
import * as Stdio from "@skein/server/Stdio"
import { Server } from "./server.ts"

Stdio.runMain(Server)
