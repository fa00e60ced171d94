//! What stands under the help of every command that calls an agent, after what the command has to say for itself.

/// Puts lines above what is the same for all.
macro_rules! with_exit_codes {
    ($($line:literal),*) => {
        concat!(
            $($line, "\n",)*
            "\n",
            "AGENT is a URL (https://agent.example, its card or its endpoint), a file that holds its card, or the name of an ",
            "agent of the workspace, which switchboard agents lists.\n",
            "Flags with a variable can also be set in a file; switchboard config show says what is in force.\n",
            "Exit codes: 0 done, whatever became of the task; 1 failed; 2 typed wrongly; 3 not reachable; 4 credentials; ",
            "5 time is up; 130 Ctrl-C."
        )
    };
}
