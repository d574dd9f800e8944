/** The everything server over stdio, for a gateway that starts it. */
import * as Stdio from "@skein/server/Stdio"
import { Everything } from "../../examples/everything/server.ts"

Stdio.runMain(Everything)
