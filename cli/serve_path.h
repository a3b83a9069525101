// serve_path.h: what a path of the page's server asks for. Every one begins with the server's token.
#ifndef CLI_SERVE_PATH_H
#define CLI_SERVE_PATH_H

enum { SERVE_TOKEN_LENGTH = 32 };

enum serve_target {
    SERVE_PAGE,     // "/TOKEN/"
    SERVE_QUESTION, // "/TOKEN/ask?QUESTION": *question is in the path
    SERVE_NOTHING
};

enum serve_target serve_path(const char *token, const char *path, const char **question);

#endif
