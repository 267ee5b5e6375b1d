"""What every part of the bench needs: private Redis servers, a fast client, the contenders, counting."""
